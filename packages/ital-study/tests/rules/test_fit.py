import itertools

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import typer
from scipy import special, stats

import ital_study as study
from ital import mdp
from ital.errors import InputError
from ital_study.cli import fit
from ital_study.data import table as _table
from ital_study.fitting import likelihood
from ital_study.fitting import scores as _scores
from ital_study.fitting import selection as _selection
from ital_study.fitting.likelihood import Choices
from ital_study.fitting.scores import NAMES
from ital_study.report import fit_report
from ital_study.robots.world import CORE_ACTION, Arrows

pytestmark = pytest.mark.usefixtures("undrawn")


def people(rng, rho, epsilon, lengths, count=10):
    """Scores and choices of people with the given parameters."""
    scores = rng.normal(size=(sum(lengths), count))
    first = np.cumsum([0, *lengths[:-1]])
    per_step = [np.repeat(values, lengths) for values in (rho, epsilon)]
    chances = likelihood.probabilities(scores, *per_step)
    chosen = np.array([rng.choice(count, p=p) for p in chances])
    return scores, Choices(chosen, first, count)


def by_hand(scores, chosen, rho, epsilon):
    """The log-likelihood, one step after the other."""
    total = 0.0
    for row, choice in zip(scores, chosen, strict=True):
        softmax = np.exp(rho * row) / sum(np.exp(rho * row))
        total += np.log(epsilon / len(row) + (1 - epsilon) * softmax[choice])
    return total


@pytest.fixture(scope="module")
def five():
    rng = np.random.default_rng(0)
    return people(rng, [0.0, 0.5, 1.0, 3.0, 2.0], [0.0, 0.1, 0.0, 0.3, 0.8], [40, 60, 25, 60, 90])


# ---- the likelihood ----


def test_probabilities_add_up_and_have_the_right_limits():
    scores = np.random.default_rng(1).normal(size=(6, 10))
    scores[0] = 3.0  # all tied
    for rho, epsilon in itertools.product((0.0, 0.7, 50.0, 1e4), (0.0, 0.3, 1.0)):
        chances = likelihood.probabilities(scores, rho, epsilon)
        np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-12)
        assert chances.min() >= epsilon / 10 - 1e-15
        np.testing.assert_allclose(chances[0], 0.1)
    np.testing.assert_allclose(likelihood.probabilities(scores, 2.0, 1.0), 0.1)
    np.testing.assert_allclose(likelihood.probabilities(scores, 0.0, 0.2), 0.1)
    sharp = likelihood.probabilities(scores[1:], 1e6, 0.0)
    np.testing.assert_allclose(sharp, np.eye(10)[scores[1:].argmax(axis=1)])


def test_the_likelihood_is_that_of_every_step(five):
    scores, choices = five
    rho, epsilon = np.array([0.0, 0.3, 1.0, 4.0, 9.0]), np.array([0.5, 0.0, 0.2, 1.0, 0.05])
    found = likelihood.log_likelihood(scores, choices, rho, epsilon)
    ends = [*choices.first[1:], len(scores)]
    for i, (first, end) in enumerate(zip(choices.first, ends, strict=True)):
        own = by_hand(scores[first:end], choices.chosen[first:end], rho[i], epsilon[i])
        assert found[i] == pytest.approx(own, rel=1e-12)
    at_random = likelihood.log_likelihood(scores, choices, rho, np.ones(5))
    np.testing.assert_allclose(at_random, -choices.steps * np.log(10), rtol=1e-12)


def test_the_maximum_is_that_of_a_grid(five):
    scores, choices = five
    best = likelihood.maximise(scores, choices)
    rhos = np.concatenate([[0], np.geomspace(0.02, 100, 120)])
    on_grid = np.stack(
        [
            likelihood.log_likelihood(scores, choices, np.full(5, rho), np.full(5, epsilon))
            for rho, epsilon in itertools.product(rhos, np.linspace(0, 1, 81))
        ]
    )
    highest = on_grid.max(axis=0)
    assert (best.log_likelihood >= highest - 1e-9).all()
    np.testing.assert_allclose(best.log_likelihood, highest, atol=0.05)
    again = likelihood.log_likelihood(scores, choices, best.rho, np.nan_to_num(best.epsilon))
    np.testing.assert_allclose(again, best.log_likelihood, rtol=1e-10)
    inner = (best.rho > 0) & (best.rho < 100) & (best.epsilon > 0) & (best.epsilon < 1)
    assert inner.sum() >= 2
    for change in ((1e-4, 0), (0, 1e-4)):
        ahead, behind = (
            likelihood.log_likelihood(
                scores, choices, best.rho + sign * change[0], best.epsilon + sign * change[1]
            )
            for sign in (1, -1)
        )
        np.testing.assert_allclose(((ahead - behind) / 2e-4)[inner], 0, atol=0.01)


def test_the_numbers_of_many_steps_are_found_again():
    rho, epsilon = [0.5, 1.5, 4.0], [0.3, 0.1, 0.5]
    scores, choices = people(np.random.default_rng(2), rho, epsilon, [8000] * 3)
    best = likelihood.maximise(scores, choices)
    np.testing.assert_allclose(best.rho, rho, rtol=0.12)
    np.testing.assert_allclose(best.epsilon, epsilon, atol=0.06)


def test_ends_of_the_range_are_exact():
    """Always the best arrow: ρ at its bound. Always the worst: nothing to follow. Ties everywhere: nothing either."""
    scores = np.random.default_rng(3).normal(size=(60, 10))
    scores[40:] = 1.0
    chosen = np.concatenate(
        [scores[:20].argmax(axis=1), scores[20:40].argmin(axis=1), np.zeros(20, int)]
    )
    best = likelihood.maximise(scores, Choices(chosen, np.array([0, 20, 40]), 10))
    np.testing.assert_allclose(best.rho, [100, 0, 0], rtol=1e-4)
    np.testing.assert_array_equal(best.epsilon, [0, np.nan, np.nan])
    np.testing.assert_allclose(best.log_likelihood[1:], -20 * np.log(10))
    assert best.log_likelihood[0] > -1


# ---- selection over people ----


def test_a_model_that_is_best_for_all():
    evidence = np.full((12, 4), -100.0)
    evidence[:, 2] = -50.0
    selection = _selection.select(evidence)
    np.testing.assert_allclose(selection.frequency, np.array([1, 1, 13, 1]) / 16)
    assert selection.exceedance[2] > 0.999
    assert selection.protected[2] > 0.99
    assert selection.equal < 0.01
    np.testing.assert_allclose(selection.responsibility, np.eye(4)[[2] * 12], atol=1e-15)


def test_equal_evidence_says_nothing():
    selection = _selection.select(np.full((9, 5), -3.0))
    for values in (selection.frequency, selection.exceedance, selection.protected):
        np.testing.assert_allclose(values, 0.2, atol=1e-9)
    assert selection.equal > 0.5


def test_two_camps_are_as_frequent_as_they_are():
    evidence = np.zeros((30, 3))
    evidence[:20, 0] = evidence[20:, 1] = 40.0
    selection = _selection.select(evidence)
    np.testing.assert_allclose(selection.frequency, np.array([21, 11, 1]) / 33)
    np.testing.assert_allclose(selection.sd, stats.dirichlet.var(selection.alpha) ** 0.5)


def test_exceedance_is_that_of_the_dirichlet_distribution():
    two = _selection.exceedance(np.array([3.0, 7.5]))
    np.testing.assert_allclose(two[0], special.betainc(7.5, 3.0, 0.5), atol=1e-6)
    alpha = np.array([1.0, 4.0, 5.0, 2.5])
    drawn = np.random.default_rng(4).dirichlet(alpha, 200_000).argmax(axis=1)
    np.testing.assert_allclose(
        _selection.exceedance(alpha), np.bincount(drawn) / 200_000, atol=0.005
    )


@pytest.mark.parametrize(("scale", "gap"), [(1.0, 0.5), (50.0, 1e-9)])
def test_the_free_energy_is_a_bound_that_clear_evidence_reaches(scale, gap):
    """The evidence of three people and two models, by summing over all who might use what."""
    evidence = scale * np.array([[0.0, -1.0], [-0.5, 0.5], [0.3, -2.0]])
    log_terms = []
    for models in itertools.product(range(2), repeat=3):
        counts = np.bincount(models, minlength=2)
        moments = special.gammaln(1.0 + counts).sum() - special.gammaln(2 + 3) + special.gammaln(2)
        log_terms.append(evidence[range(3), models].sum() + moments)
    exact = special.logsumexp(log_terms)
    selection = _selection.select(evidence)
    bound = _selection.free_energy(evidence, selection.alpha, selection.responsibility)
    assert exact - gap < bound <= exact + 1e-12
    for change in (0.9, 1.1):
        alpha = selection.alpha * [change, 1]
        assert _selection.free_energy(evidence, alpha, selection.responsibility) < bound


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
    units = _scores.units(rules)
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
    """With ρ at its bound and no lapses, everyone but the random people takes the best arrow of its own score."""
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
