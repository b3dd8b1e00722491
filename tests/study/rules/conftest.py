import dataclasses

import pytest

from ital import study
from ital.study import _analysis, _arms, _table


@pytest.fixture(scope="session")
def config():
    return study.load_config()


@pytest.fixture(scope="session")
def rules(config):
    return study.StudyRules(config)


@pytest.fixture(scope="session")
def teachers(config):
    return [_arms.teacher(name, default=config.beta) for name in ("machine", "random")]


@pytest.fixture(scope="session")
def ran(config, rules, teachers):
    """Twenty simulated participants of the paper's study, with the matched-step control."""
    return _arms.run(config, 20, teachers, ("naive", "aware", _arms.MATCHED), rules=rules)


@pytest.fixture(scope="session")
def steps(config, ran):
    """Their step table, of the two learners that a study has."""
    table = _arms.table(config, ran)
    return table[table["learner"] != _arms.MATCHED].reset_index(drop=True)


@pytest.fixture(scope="session")
def analysis(config, steps):
    return _analysis.analyze(_table.StudyData(config, steps))


@pytest.fixture(scope="session")
def of_three(config, teachers):
    """The analysis of six simulated participants of a study with the third robot, two maps."""
    three = dataclasses.replace(config, adaptive=True, maps=config.maps[:2])
    return _analysis.analyze(_table.StudyData(three, _arms.simulate(three, 6, teachers)))
