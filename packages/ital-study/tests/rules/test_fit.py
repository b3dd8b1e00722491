import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import typer

import ital_study as study
from ital import mdp
from ital.cli import main
from ital.errors import InputError
from ital_study.cli import fit
from ital_study.data import table as _table
from ital_study.fitting import scores as _scores
from ital_study.fitting.scores import NAMES
from ital_study.report import fit_report
from ital_study.robots.world import CORE_ACTION, Arrows

pytestmark = pytest.mark.usefixtures("undrawn")


# ---- scores ----


def test_scores_are_those_of_the_rules(config, rules):
    where = [("A", 3), ("E", 5), ("A", 7)]
    beliefs = np.stack([rules.start(number, name) for name, number in where])
    shown = [rules.candidates(number, name)[4] for name, number in where]
    drawn = np.array(shown)
    found = _scores.scores_many(
        rules, [name for name, _ in where], beliefs, Arrows(drawn[..., 0], drawn[..., 1])
    )
    assert found.shape == (6, 3, 10)
    for i, (name, _) in enumerate(where):
        exact, imitated, loss, minus_loss, gradient, nearness = found[:, i]
        np.testing.assert_allclose(
            exact, rules.volumes(name, beliefs[i], shown[i]), rtol=1e-4, atol=1e-6
        )
        # Towards itself a belief has no way to go: the volume is −η²‖g‖².
        squared = -rules.volumes_toward(beliefs[i], beliefs[i], shown[i]) / config.lr**2
        np.testing.assert_allclose(gradient**2, squared, rtol=1e-3)
        q = mdp.plan(rules.game.dynamics, rules.game.lenient, jnp.asarray(beliefs[i])).q
        here, truth = np.asarray(mdp.log_policy(q)), rules.truth(name)
        picked = [(CORE_ACTION[arrow.action], arrow.cell) for arrow in shown[i]]
        np.testing.assert_allclose(loss, [-here[at] for at in picked], rtol=1e-4)
        target_losses = [-truth.log_policy[at] for at in picked]
        by_losses = -(config.lr**2) * squared + 2 * config.lr * (loss - target_losses)
        np.testing.assert_allclose(imitated, by_losses, rtol=1e-3, atol=1e-6)
        np.testing.assert_array_equal(minus_loss, -loss)
        goal = {"A": (2, 4), "E": (2, 2)}[name]
        moves = [abs(a.cell // 5 - goal[0]) + abs(a.cell % 5 - goal[1]) for a in shown[i]]
        np.testing.assert_array_equal(nearness, -np.array(moves))


def test_units_are_spreads_of_the_first_beliefs(rules):
    units = _scores.score_units(rules)
    assert units.shape == (6,)
    assert units[2] == units[3]
    assert 0.05 < units[0] < 0.12
    assert 1.2 < units[5] < 1.8


# ---- people ----


@pytest.fixture(scope="module")
def few(config, steps):
    """The steps of four simulated participants."""
    return study.StudyData(config, steps[steps["participant"] <= 4].reset_index(drop=True))


@pytest.fixture(scope="module")
def fitted(few):
    shown = []
    found = study.fit(few, show=shown.append)
    assert shown == sorted(shown)
    assert shown[-1] == 100
    return found


def test_machines_and_random_teachers_are_told_apart(fitted):
    assert fitted.kind == fitted.mode == "simulated"
    assert fitted.participants == {"machine": 4, "random": 4}
    assert fitted.notes == []
    table = fitted.people
    assert len(table) == 2 * 4 * 3 * 7
    assert set(table["learner"]) == {"naive", "aware", "all"}
    assert (table[table["learner"] == "all"]["steps"] == 300).all()
    assert (table.groupby(["teacher", "learner", "participant"])["best"].sum() == 1).all()
    own = table[(table["teacher"] == "machine") & (table["model"] == "exact")]
    assert own["best"].all()
    np.testing.assert_allclose(own["rho"], 100, rtol=1e-3)
    assert (own["epsilon"] < 0.02).all()
    by_chance = table[table["model"] == "random"]
    assert by_chance["best"][by_chance["teacher"] == "random"].mean() > 0.8
    np.testing.assert_allclose(by_chance["bic"], 2 * by_chance["steps"] * np.log(10))
    np.testing.assert_allclose(own["bic"], 2 * np.log(own["steps"]) - 2 * own["log_likelihood"])
    top = fitted.models[
        (fitted.models["teacher"] == "machine") & (fitted.models["learner"] == "aware")
    ]
    assert list(top["model"]) == list(NAMES)
    np.testing.assert_allclose(top["frequency"].sum(), 1)
    assert top["best"].tolist() == [4, 0, 0, 0, 0, 0, 0]


def test_an_export_is_a_table_of_ital_fit(few, fitted, tmp_path, capsys):
    export = tmp_path / "data"
    _table.write_study(export, few.config, few.steps)
    out = tmp_path / "out"
    models = "exact,minus-loss,nearness"
    options = ["--unit", "1", "--by", "teacher", "--out", str(out)]
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(export), "--models", models, *options])
    assert ended.value.code == 0
    people = pd.read_csv(out / "fit_people.csv")
    same = fitted.people[fitted.people["learner"] == "all"]
    same = same.assign(person=same["teacher"] + " " + same["participant"].astype(str))
    both = people.merge(same, on=["person", "model"], suffixes=("", "_study"))
    assert len(both) == len(people) == 2 * 4 * 3
    for name in ("rho", "epsilon", "log_likelihood", "bic"):
        np.testing.assert_allclose(both[name], both[f"{name}_study"], rtol=1e-9, atol=1e-9)
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(tmp_path), "--models", models])
    assert ended.value.code == 2
    assert "not the export of a study" in capsys.readouterr().err


def test_a_person_does_not_depend_on_others(few, fitted):
    alone = study.fit(few._replace(steps=few.steps[few.steps["participant"] == 3]))
    keys, values = (
        ["teacher", "learner", "participant", "model"],
        ["rho", "epsilon", "log_likelihood", "bic"],
    )
    both = fitted.people.merge(alone.people, on=keys, suffixes=("", "_alone"))
    assert len(both) == 2 * 3 * 7
    for name in values:
        np.testing.assert_allclose(both[name], both[f"{name}_alone"], rtol=1e-6, atol=1e-9)


def test_what_cannot_be_replayed_is_left_out(few):
    steps = few.steps
    on_a = (steps["teacher"] == "machine") & (steps["map"] == "A") & (steps["learner"] == "aware")
    gap = on_a & (steps["participant"] == 1) & (steps["step"] == 11)
    found = study.fit(few._replace(steps=steps[~gap & on_a]))
    assert found.notes == [
        "19 steps follow a missing step and are left out: the belief before them is unknown."
    ]
    assert found.people.groupby("participant")["steps"].max().tolist() == [10, 30, 30, 30]
    assert set(found.people["learner"]) == {"aware", "all"}
    moved = steps[on_a].assign(distance=steps["distance"] + 0.5 * (steps["participant"] == 2))
    found = study.fit(few._replace(steps=moved))
    assert found.participants == {"machine": 3}
    assert "1 of 4 participants are left out: a replay" in found.notes[0]
    # A single step that differs leaves out the whole person, with every robot, and nobody else.
    both = (steps["teacher"] == "machine") & (steps["map"] == "A")
    step = (steps["participant"] == 3) & (steps["learner"] == "naive") & (steps["step"] == 28)
    found = study.fit(
        few._replace(steps=steps[both].assign(distance=steps["distance"] + 0.5 * step))
    )
    assert found.participants == {"machine": 3}
    taught = (
        found.people[found.people["model"] == "exact"]
        .set_index(["participant", "learner"])["steps"]
        .to_dict()
    )
    expected = {"naive": 30, "aware": 30, "all": 60}
    assert taught == {
        (number, robot): count for number in (1, 2, 4) for robot, count in expected.items()
    }
    unusable = steps[on_a].assign(usable=steps["participant"] != 4)
    assert study.fit(few._replace(steps=unusable)).notes == [
        "1 of 4 participants are not usable and are left out."
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"usable": False}, "no participant of this study is usable"),
        ({"distance": 1.0}, "stored distances of 8 of 8 participants differ from a replay"),
        (
            {"choice": 10},
            "chose arrow 10 in step 1 on map 'A', but this study has 30 steps of 10 arrows",
        ),
    ],
)
def test_data_that_cannot_be_fitted_are_refused(few, change, message):
    with pytest.raises(InputError, match=message):
        study.fit(few._replace(steps=few.steps[few.steps["map"] == "A"].assign(**change)))


# ---- recovery ----


@pytest.fixture(scope="module")
def recovered(config):
    return study.recover(config, participants=2, steps=36, rationalities=(100.0,), lapse=0.0)


def test_strict_people_of_every_kind_are_found(recovered):
    """With ρ at its bound and no lapses, everyone but the random people takes the best arrow of its
    own score.
    """
    for learner in ("naive", "aware", "all"):
        counts = fit_report.confusion(recovered, 100.0, learner)
        assert (counts.sum(axis=1) == 2).all()
        np.testing.assert_array_equal(counts[:-1], 2 * np.eye(7, dtype=int)[:-1])
    true = recovered.people[recovered.people["kind"] == recovered.people["model"]]
    assert set(true[true["learner"] == "all"]["steps"]) == {72}
    assert (true[true["kind"] != "random"]["log_likelihood"] > -25).all()
    assert (recovered.parameters["epsilon_50"] < 0.05).all()
    same = recovered.correlations.set_index(["learner", "score", "other"])["correlation"]
    assert same["naive", "loss", "minus-loss"] == pytest.approx(-1)
    assert same["naive", "exact", "imitated"] == pytest.approx(0.66, abs=0.08)
    assert same["naive", "loss", "at the start"] > 0.98 > same["aware", "loss", "at the start"]
    assert same["aware", "nearness", "at the start"] == pytest.approx(1)


def test_a_simulated_person_is_the_same_in_any_company(config, recovered):
    alone = study.recover(
        config, participants=1, steps=36, rationalities=(100.0,), lapse=0.0
    ).people
    first = recovered.people[recovered.people["participant"] == 1].reset_index(drop=True)
    columns = ["learner", "kind", "model", "log_likelihood"]
    pd.testing.assert_frame_equal(first[columns], alone[columns], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"participants": 0}, "--participants 0: at least one person"),
        (
            {"steps": 151},
            "--steps 151: a person teaches each robot of this study for 1 to 150 steps",
        ),
        ({"rationalities": (0.0,)}, "ρ must lie above 0 and be at most 100"),
        ({"rationalities": (1.0, 1.0)}, "values of ρ must differ"),
        ({"lapse": 1.0}, "--lapse 1: the share of lapses must lie in"),
    ],
)
def test_recovery_refuses_numbers_out_of_range(config, change, message):
    with pytest.raises(InputError, match=message):
        study.recover(config, **change)


# ---- files and the command ----


def run(*arguments):
    app = typer.Typer()
    app.callback()(lambda: None)
    fit.register(app)
    return typer.main.get_command(app)(["fit", *map(str, arguments)], standalone_mode=False)


def test_the_command_writes_tables_and_a_figure(tmp_path, few, capsys, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "150")
    on_a = few.steps[(few.steps["map"] == "A") & (few.steps["participant"] < 3)]
    _table.write_study(tmp_path / "data", few.config, on_a)
    run(tmp_path / "data")
    printed = capsys.readouterr().out
    assert printed.startswith("SIMULATED DATA: no person took part")
    assert "Which teacher is each person? Machine teachers" in printed
    people, models = (
        pd.read_csv(tmp_path / "data" / "analysis" / f"fit_{name}.csv")
        for name in ("people", "models")
    )
    assert len(people) == 2 * 2 * 3 * 7
    assert {"rho", "epsilon", "log_likelihood", "bic", "model"} <= set(people)
    assert {"frequency", "exceedance", "protected"} <= set(models)
    assert set(models["data"]) == {"simulated"}
    assert (tmp_path / "data" / "analysis" / "fit.png").exists()


def test_recovery_is_written(tmp_path, recovered):
    names = {file.name for file in fit_report.write_recovery(recovered, tmp_path)}
    tables = {f"recovery_{name}.csv" for name in ("people", "models", "parameters", "correlations")}
    assert names == tables | {"recovery.png", "recovery.pdf"}
    assert len(pd.read_csv(tmp_path / "recovery_models.csv")) == 3 * 7 * 7
    assert fit_report.recovery_table(recovered).row_count == 7


def test_figures_and_words_name_the_source(fitted):
    assert "SIMULATED DATA" in fit_report.draw(fitted).get_suptitle()
    human = fitted._replace(kind="human", mode="live", participants={"human": 1})
    assert fit_report.whose(human) == "Human data: 1 participant"
    assert fit_report.whose(human._replace(mode="pilot")).startswith(
        "PILOT RUNS, not data of the study"
    )
    blocks = fit_report.blocks(fitted, "machine")
    assert [block["kind"] for block in blocks].count("table") == 3
    assert any(
        "the model exact is the most frequent (4 of 4 people" in str(block) for block in blocks
    )
    assert fit_report.blocks(fitted, "human") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a folder or database, .* or --recovery"),
        (["data", "--recovery"], "give either a folder or database"),
        (["nowhere"], "there is no folder or database nowhere"),
        (["nowhere", "--mode", "alive"], "mode must be one of live"),
        (
            ["--recovery", "--rationality", "1,x"],
            "--rationality 1,x: give numbers separated by commas",
        ),
        (["--recovery", "--steps", "1000"], "--steps 1000: a person teaches"),
    ],
)
def test_wrong_use_is_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run(*arguments)
    assert not list(tmp_path.iterdir())
