import dataclasses

import jax
import pytest

import ital_study as study
from ital_study.analysis import measures
from ital_study.data import table as _table
from ital_study.robots import rules as _rules
from ital_study.simulation import arms, lanes


@pytest.fixture(scope="session", autouse=True)
def _fast():
    """The programs of many participants as in ``fast``.

    Here they run for longer than they take to compile.
    """
    options = {"xla_backend_optimization_level": 1}
    if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 11):  # JAX 0.11 dropped the option
        options["xla_cpu_use_fusion_emitters"] = False
    with pytest.MonkeyPatch.context() as patch:
        for module, name, static in ((lanes, "_step_lanes", (0, 1)), (_rules, "_measure_many", 0)):
            plain = getattr(module, name).__wrapped__
            patch.setattr(
                module, name, jax.jit(plain, static_argnums=static, compiler_options=options)
            )
        yield


@pytest.fixture(scope="session")
def config():
    return study.load_config()


@pytest.fixture(scope="session")
def rules(config):
    return study.StudyRules(config)


@pytest.fixture(scope="session")
def teachers(config):
    return [arms.teacher(name, default=config.beta) for name in ("machine", "random")]


@pytest.fixture(scope="session")
def ran(config, rules, teachers):
    """Twenty simulated participants of the paper's study, with the matched-step control."""
    return arms.run(config, 20, teachers, ("naive", "aware", arms.MATCHED), rules=rules)


@pytest.fixture(scope="session")
def steps(config, ran):
    """Their step table, of the two learners that a study has."""
    table = arms.table(config, ran)
    return table[table["learner"] != arms.MATCHED].reset_index(drop=True)


@pytest.fixture(scope="session")
def analysis(config, steps):
    return measures.analyze(_table.StudyData(config, steps))


@pytest.fixture(scope="session")
def of_three(config, teachers):
    """The analysis of six simulated participants of a study with the third robot, two maps."""
    three = dataclasses.replace(config, adaptive=True, maps=config.maps[:2])
    return measures.analyze(_table.StudyData(three, arms.simulate(three, 6, teachers)))
