import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, losses, models, tasks, teachers, teaching
from ital.models import Init
from ital.teaching import _auto_beta, _program, _session, _step
from tests.lanes import PAPER, MapLane, PoolLane
from tests.worlds import numbers_pool, small_classes, small_numbers

GOLDEN = Path(__file__).parent / "golden" / "curves.json"


def sessions(task, teacher="cooperative", methods=PAPER, seeds=(0, 1), **options):
    defaults = {
        "steps": 40,
        "lr": 0.01,
        "batch_size": 20,
        "init": Init("uniform", 1.0),
        "eval_every": 10,
    }
    run = teaching.Run(seeds=seeds, **{**defaults, **options})
    return teaching.open_sessions(task, teachers.make(teacher), methods, run)


def distances(task, **options):
    options = {"steps": 40, "lr": 0.01, "seeds": [0, 1], **options}
    return ital.teach(task, **options).curves["distance"]


def small_map():
    """A 3 × 3 map planned to the last digit, soft enough for several actions to matter."""
    cells = np.random.default_rng(0).uniform(-2, 2, (3, 3))
    return tasks.irl(cells, sharpness=MapLane.sharpness, tolerance=1e-13, beta=3000.0)


@pytest.mark.parametrize("teacher", ["cooperative", "adversarial"])
@pytest.mark.parametrize(
    ("make", "kind"),
    [(small_classes, PoolLane), (small_numbers, PoolLane), (small_map, MapLane)],
    ids=["small_classes", "small_numbers", "small_map"],
)
@pytest.mark.usefixtures("x64")
def test_the_loop_is_algorithm_1_step_by_step(make, kind, teacher):
    task = make()
    run = ital.teach(task, teacher, PAPER, steps=15, seeds=[3, 4], lr=0.01, eval_every=5)
    walk_along(kind(task, teacher, seed=3), run)


def walk_along(lane, run):
    """Compare distances and final parameters of every method with those of an independent lane, on
    seed 3.
    """
    walked = {}
    steps = run.curves["step"].values.tolist()
    for method in run.curves["learner"].values.tolist():
        walked[method] = lane.walk(method, steps[-1])
        curve = run.curves["distance"].sel({"learner": method, "seed": 3})
        np.testing.assert_allclose(
            curve, walked[method].distances[steps], rtol=1e-9, err_msg=method
        )
        place = run.curves["seed"].values.tolist().index(3)
        found = run.parameters[method][place]
        np.testing.assert_allclose(
            found, walked[method].params, rtol=1e-8, atol=1e-10, err_msg=method
        )
    return walked


@pytest.mark.parametrize(
    ("make", "teacher", "options"),
    [
        (small_classes, "mixture:0.6", {}),
        (small_classes, "switching:5:random", {}),
        (small_classes, "boltzmann:50", {"choices": 2}),
        (small_classes, "synthesis", {}),
        (small_classes, "imitation", {}),
        (small_classes, "exam:4:7", {}),
        (small_numbers, "omniscient", {"choices": 2}),
        (small_numbers, "largest-error", {"choices": 2}),
        (small_numbers, "synthesis:0.5", {}),
        (small_numbers, "imitation:0.1", {}),
        # Few enough examples for the planner's beam to hold every plan, and steps so long that
        # greed is not the best.
        (small_numbers, "planner:3", {"batch_size": 3, "lr": 0.15}),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else getattr(part, "__name__", part),
)
@pytest.mark.usefixtures("x64")
def test_the_loop_is_algorithm_1_with_every_teacher(make, teacher, options):
    options = {"lr": 0.05, "beta": 20.0, "batch_size": 6, **options}
    methods = [learners.make(name) for name in ("imt", "ital", "ital-2")]
    task = make()
    run = ital.teach(task, teacher, methods, steps=9, seeds=[4, 3], eval_every=3, **options)
    walked = walk_along(PoolLane(task, teacher, seed=3, methods=methods, **options), run)
    for method, walk in walked.items():
        if walk.memory is not None:
            np.testing.assert_allclose(
                run.memories[method][1], walk.memory, rtol=1e-8, atol=1e-10, err_msg=method
            )
        for name, by_step in walk.signals.items():
            found = run.curves[name].sel({"learner": method, "seed": 3}).values[1:]
            np.testing.assert_allclose(
                found, by_step.reshape(3, 3).mean(axis=1), rtol=1e-9, err_msg=f"{method} {name}"
            )


WITH_GRADIENTS = [
    name for name in teachers.REGISTRY if "likelihoods" not in teachers.make(name).needs
]


@pytest.mark.parametrize("teacher", WITH_GRADIENTS)
def test_no_rationality_equals_the_naive_learner_bit_for_bit(teacher):
    zero = learners.teacher_aware(0.0)
    partial = learners.teacher_aware(0.0, view=5)
    # In all teachers but the omniscient one these are numbers: two programs, with and without
    # noise.
    curves = distances(
        small_classes(), teacher=teachers.make(teacher), learner=[learners.imt(), zero, partial]
    )
    assert (curves[0] == curves[1]).all()
    assert (curves[0] == curves[2]).all()


def test_a_view_of_the_whole_batch_is_plain_ital_bit_for_bit():
    whole = learners.teacher_aware(view=20)
    curves = distances(small_classes(), learner=[learners.teacher_aware(), whole])
    assert (curves[0] == curves[1]).all()


@pytest.mark.parametrize("pair", [("imitation", "imitation:0.1"), ("synthesis:0.5", "synthesis")])
def test_numbers_of_a_teacher_are_traced(pair):
    first, second = pair
    ital.teach(small_numbers(), first, "imt", steps=3, seeds=3, batch_size=5)
    before = _session.run_block._cache_size(), _session.begin._cache_size()
    ital.teach(small_numbers(), second, "imt", steps=3, seeds=3, batch_size=5)
    assert (_session.run_block._cache_size(), _session.begin._cache_size()) == before


def test_changing_numbers_never_recompiles():
    task = small_classes()

    def run(**options):
        methods = [
            learners.imt(),
            learners.teacher_aware(options.pop("own", None), view=options.pop("view", None)),
        ]
        ital.teach(task, learner=methods, **{"steps": 20, "seeds": 5, "batch_size": 19, **options})

    def compiled():
        return (
            _session.run_block._cache_size(),
            _session.begin._cache_size(),
            _auto_beta.auto_beta_per_seed._cache_size(),
        )

    before = compiled()
    run(beta="auto")
    after = compiled()
    assert after == tuple(n + 1 for n in before)
    for change in (
        {"beta": 7.0},
        {"beta": -7.0},
        {"own": 5.0},
        {"lr": 0.05},
        {"view": 3},
        {"seeds": [8, 5, 6, 7]},
        {"init": "uniform:0.3"},
        {"init": "normal:0.1"},
        {"steps": 33},
        {"beta": "auto", "lr": 0.02},
        {"teacher": "adversarial"},
        {"teacher": "switching"},
        {"eval_every": 7},
        {"eval_every": 1},
    ):
        run(**change)
        assert compiled() == after, change
    ital.teach(
        small_classes(), learner=[learners.imt(), learners.sgd()], steps=20, seeds=3, batch_size=19
    )
    assert compiled() == after, "an equal task with other methods is the same program"


def test_whole_numbers_and_others_are_one_program():
    assert _session.spread(5, (2, 3)).dtype == _session.spread(5.0, (2, 3)).dtype


@pytest.mark.parametrize("size", [1, 5, 64, 65, 200])
def test_ranks_are_places_in_the_order(size):
    tickets = np.random.default_rng(size).integers(0, 50, size).astype(np.uint32)
    expected = np.argsort(np.argsort(tickets, kind="stable"), kind="stable")
    assert _step._ranks(jnp.asarray(tickets)).tolist() == expected.tolist()


def test_all_methods_of_the_paper_are_lanes_of_one_program():
    assert len(sessions(small_classes())) == 1
    assert len(sessions(small_classes(), teacher="omniscient")) == 1
    scheduled = learners.teacher_aware(lambda step: 5.0 + step)._replace(name="scheduled")
    assert len(sessions(small_classes(), methods=[*PAPER, scheduled])) == 2


def test_methods_of_a_seed_share_start_and_batches():
    (session,) = sessions(small_classes())
    start = np.asarray(session.carry.lanes.params)
    assert (start == start[:, :1]).all()
    assert not (start[0] == start[1]).all()
    assert (start[..., -1] == 0).all(), "the bias starts at 0"


@pytest.mark.parametrize("teacher", ["cooperative", "random", "boltzmann"])
@pytest.mark.usefixtures("x64")
def test_a_lane_does_not_depend_on_its_neighbours(teacher):
    teacher = teachers.make(teacher)
    task = small_classes()
    all_lanes = distances(task, teacher=teacher, learner=PAPER, seeds=[0, 1, 2, 3, 4])
    few = distances(task, teacher=teacher, learner=[learners.make("ital-5")], seeds=[3])
    both = (
        all_lanes.sel({"learner": "ital-5", "seed": 3}),
        few.sel({"learner": "ital-5", "seed": 3}),
    )
    np.testing.assert_allclose(*both, rtol=1e-11)


def test_the_block_size_changes_no_number():
    (one,), (other,) = sessions(small_classes(), steps=60), sessions(small_classes(), steps=60)
    rows = [other.advance(n).rows["distance"] for n in (1, 3, 2)]
    np.testing.assert_array_equal(one.advance(6).rows["distance"], np.concatenate(rows))


def test_a_session_resumes_from_a_carry_bit_for_bit():
    (one,), (other,) = sessions(small_classes(), steps=60), sessions(small_classes(), steps=60)
    one.advance(2)
    other.carry = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), one.carry)
    np.testing.assert_array_equal(one.advance(4).rows["loss"], other.advance(4).rows["loss"])


def test_steps_start_at_zero_and_end_at_the_last():
    curves = ital.teach(small_classes(), steps=37, seeds=2, eval_every=10).curves
    assert curves["step"].values.tolist() == [0, 10, 20, 30, 37]
    longer = ital.teach(small_classes(), steps=40, seeds=2, eval_every=37).curves
    np.testing.assert_array_equal(curves["loss"].values[..., -1], longer["loss"].values[..., 1])


def test_steps_are_counted_from_zero_and_signals_averaged_over_those_taken():
    def update(lesson, settings, params, memory):
        return learners.Update(params, memory, {"now": 1.0 * lesson.step, "of": 1.0 * lesson.steps})

    clock = learners.Learner("clock", "Clock", learners.Rule(lambda params, settings: (), update))
    curves = ital.teach(small_numbers(), learner=clock, seeds=1, steps=5, eval_every=2).curves
    assert curves["now"].values[0, 0, 1:].tolist() == [0.5, 2.5, 4.0]
    assert curves["of"].values[0, 0, 1:].tolist() == [5.0, 5.0, 5.0]


def test_random_numbers_of_start_steps_and_auto_are_streams_of_their_own():
    assert len({_program.START, _program.STEPS, _program.AUTO}) == 3


def test_learners_are_told_what_fits_teacher_and_task():
    def told(teacher, beta=None):
        task = small_classes(beta_decay=0.05)
        return teaching.situation(
            task, teachers.make(teacher), teaching.Run(beta=beta), lambda volumes: None
        )[:4]

    assert told("cooperative") == (300.0, 0.05, 20, "imitated")
    assert told("adversarial") == (-300.0, 0.05, 20, "imitated")
    assert told("omniscient") == (300.0, 0.05, 20, "exact")
    assert told("adversarial", 5.0) == (5.0, 0.0, 20, "imitated")


def test_examples_are_copies_only_where_all_that_was_drawn_is_equal():
    """A constant drawn with the rows does not make two examples equal, so auto finds the same β."""
    plain = small_numbers()
    rules = plain.rules._replace(
        draw=lambda key, world, size: (plain.rules.draw(key, world, size), jnp.zeros(size, int)),
        show=lambda side, drawn: plain.rules.show(side, drawn[0]),
        rows=lambda drawn: drawn[0],
    )
    found = [
        sessions(task, methods=[learners.teacher_aware("auto")])[0].learners[0].settings.beta
        for task in (plain, plain._replace(rules=rules))
    ]
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize(
    ("batch", "first"),
    [
        (np.array([4, 2, 4, 4, 2]), [0, 1, 0, 0, 1]),
        ((np.array([1, 1, 1]), {"action": np.array([0, 2, 0])}), [0, 1, 0]),
        (
            np.array([[0.5, 1.0], [0.5, 2.0], [0.5, 1.0], [np.nan, 1.0], [np.nan, 1.0]]),
            [0, 1, 0, 3, 4],
        ),
        ((np.zeros(4), np.float32(3.0)), [0, 1, 2, 3]),  # a number for all tells nothing of each
        ((), [0, 1, 2]),
    ],
    ids=["rows", "pairs", "vectors", "one for all", "nothing"],
)
def test_copies_are_what_the_task_drew_twice(batch, first):
    assert _step.first_copies(tasks.copies(batch, len(first))).tolist() == first


@pytest.mark.parametrize("teacher", ["cooperative", "adversarial", "omniscient"])
def test_the_first_of_several_copies_is_chosen_however_volumes_are_rounded(teacher):
    """Volumes that rise and norms that fall along the mini-batch simulate rounding that separates
    copies.
    """
    plain = small_numbers()
    place = jnp.arange(20.0)
    sign = -1.0 if teacher == "adversarial" else 1.0

    def gradients(*given):
        exact = plain.rules.gradients(*given)
        return exact._replace(squared_norms=exact.squared_norms - place)

    rules = plain.rules._replace(
        draw=lambda key, world, size: plain.rules.draw(key, world, size) % 3,
        volumes=lambda *given: plain.rules.volumes(*given) + sign * 1e-4 * place,
        gradients=gradients,
    )

    def update(lesson, settings, params, memory):
        return learners.Update(params, memory, {"chosen": 1.0 * lesson.chosen})

    told = learners.Learner("told", "Told", learners.Rule(lambda params, settings: (), update))
    task = plain._replace(rules=rules)
    chosen = (
        ital.teach(task, teacher, told, steps=20, seeds=1, eval_every=1)
        .curves["chosen"]
        .values[0, 0, 1:]
    )
    (session,) = sessions(task, teacher, [told], seeds=[0])
    key, world = jax.random.fold_in(teaching.key_of(0), 1), jax.tree.map(jnp.asarray, task.world(0))
    first = jax.jit(
        jax.vmap(lambda t: teaching.draw(session.program, world, jax.random.fold_in(key, t)).first)
    )
    steps, index = np.arange(20), chosen.astype(int)
    assert (first(steps)[steps, index] == index).all()


def test_a_live_teacher_sees_equal_volumes_of_copies():
    task = small_numbers()
    rules = task.rules._replace(
        volumes=lambda *given: task.rules.volumes(*given) + 1e-4 * jnp.arange(20.0)
    )
    live = ital.session(task._replace(rules=rules), "imt", steps=3)
    rows = live.candidates.x.x
    same = (rows[:, None] == rows).all(axis=-1)
    first = same.argmax(axis=1)
    assert (first != np.arange(20)).any()
    np.testing.assert_array_equal(live.volumes, live.volumes[first])


def test_long_intervals_run_in_short_blocks_with_the_same_numbers():
    options = {
        "seeds": 2,
        "steps": 450,
        "learner": [learners.teacher_aware(1000.0)],
        "diagnostics": True,
    }
    often = ital.teach(small_numbers(), eval_every=10, **options).curves
    seldom = ital.teach(small_numbers(), eval_every=200, **options).curves
    assert seldom["step"].values.tolist() == [0, 200, 400, 450]
    np.testing.assert_array_equal(seldom["loss"], often["loss"].sel(step=[0, 200, 400, 450]))
    shares = often["theorem_conditions"].values[..., 1:]
    expected = [shares[..., :20].mean(-1), shares[..., 20:40].mean(-1), shares[..., 40:].mean(-1)]
    np.testing.assert_allclose(
        seldom["theorem_conditions"].values[..., 1:], np.stack(expected, -1), rtol=1e-5
    )
    (session,) = sessions(small_numbers(), steps=10**6, eval_every=10**6)
    assert session.stride == 100


def test_the_tasks_own_beta_and_its_decay_are_used():
    decaying = small_classes(beta_decay=0.05)
    by_task = distances(decaying, learner=learners.teacher_aware())
    by_hand = distances(small_classes(), learner=learners.teacher_aware(300.0, beta_decay=0.05))
    by_run = distances(small_classes(), learner=learners.teacher_aware(), beta_decay=0.05)
    np.testing.assert_array_equal(by_task, by_hand)
    np.testing.assert_array_equal(by_task, by_run)
    assert not np.array_equal(by_task, distances(small_classes(), learner=learners.teacher_aware()))
    with pytest.raises(ital.errors.InputError, match="beta_decay must lie in"):
        distances(small_classes(), learner=learners.teacher_aware(), beta_decay=1.0)


@pytest.mark.parametrize("nonsense", [lambda v: None, lambda v: v, jnp.max])
def test_a_teacher_must_choose_an_index(nonsense):
    teacher = teachers.Teacher("odd", lambda key, view, settings: nonsense(view.volumes))
    with pytest.raises(ValueError, match="one index"):
        ital.teach(small_classes(), teacher, seeds=1, steps=2)


@pytest.mark.parametrize("name", ["distance", "step", "beta"])
def test_signals_cannot_take_the_name_of_something_else(name):
    rule = learners.Rule(
        lambda p, s: (), lambda lesson, s, p, m: learners.Update(p, m, {name: lesson.lr})
    )
    with pytest.raises(ValueError, match="taken"):
        ital.teach(small_classes(), learner=learners.Learner("odd", "Odd", rule), seeds=1, steps=2)


def test_updates_must_keep_the_shape():
    rule = learners.Rule(lambda p, s: (), lambda lesson, s, p, m: learners.Update(p.ravel()))
    with pytest.raises(ValueError, match="shape"):
        ital.teach(small_classes(), learner=learners.Learner("odd", "Odd", rule), seeds=1, steps=2)


@pytest.mark.usefixtures("x64")
def test_diagnostics_are_the_shares_of_steps_on_which_theorem_1_holds():
    aware = learners.teacher_aware(3000.0)  # large enough to overshoot at times
    options = {"steps": 24, "lr": 0.01, "eval_every": 8, "diagnostics": True}
    curves = ital.teach(
        small_numbers(), learner=[learners.imt(), aware], seeds=[3, 4], **options
    ).curves
    names = ["theorem_conditions", "theorem_improved"]
    assert np.isnan(curves[names].isel(step=0).to_array()).all()
    assert (curves["theorem_improved"].sel({"learner": "imt"}).values[..., 1:] == 0).all()
    lane, held = PoolLane(small_numbers(), "cooperative", seed=3, beta=3000.0), []
    lane.begin("ital")
    for t in range(24):
        lane.step(t)
        held.append(lane.theorem())
    shares = np.reshape(held, (3, 8, 2)).mean(axis=1)
    assert ((shares > 0) & (shares < 1)).any(axis=0).all(), "the case tells nothing"
    found = curves[names].sel({"learner": "ital", "seed": 3}).to_array().values[:, 1:]
    np.testing.assert_allclose(found.T, shares, atol=1e-12)


def test_beta_is_recorded_for_every_lane():
    run = ital.teach(
        small_classes(),
        teachers.adversarial(),
        [learners.imt(), learners.teacher_aware()],
        seeds=2,
        steps=5,
    )
    assert run.curves["beta"].values.tolist() == [[0.0, 0.0], [-300.0, -300.0]]
    run = ital.teach(
        small_classes(), teachers.adversarial(), learners.teacher_aware("auto"), seeds=2, steps=5
    )
    assert (run.curves["beta"].values < 0).all()


def test_divergence_stays_in_the_curves():
    with pytest.warns(ital.errors.DivergenceWarning):
        curves = ital.teach(
            small_numbers(), learner=learners.batch(), lr=1e9, steps=100, seeds=2
        ).curves
    assert np.isfinite(curves["distance"].values[..., 0]).all()
    assert not np.isfinite(curves["distance"].values[..., -1]).any()
    assert ital.results.divergence(curves, "batch") == (10, 2)


def test_one_number_that_is_not_finite_is_divergence():
    """In one entry of one of two arrays of parameters, and only in the lane that has it."""
    model = models.differentiable(
        "two",
        lambda key: {"bias": jnp.ones(2), "slopes": jnp.ones((2, 4))},
        lambda params, x: params["slopes"] @ x + params["bias"],
        losses.squared,
    )
    pool = numbers_pool(0)._replace(learner_target=None)
    task = tasks.from_pool("two", pool, losses.squared, beta=1.0, model=model)

    def update(lesson, fatal_step, params, memory):
        bias = params["bias"].at[1].set(jnp.where(lesson.step == fatal_step, jnp.nan, 1.0))
        return learners.Update({**params, "bias": bias})

    rule = learners.Rule(lambda params, settings: (), update)
    methods = [learners.Learner(f"until-{step}", "Until", rule, float(step)) for step in (3, 99)]
    with pytest.warns(ital.errors.DivergenceWarning):
        curves = ital.teach(
            task, learner=methods, steps=6, seeds=2, batch_size=5, eval_every=2
        ).curves
    assert curves["diverged_at"].values.tolist() == [[4, 4], [-1, -1]]


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()))
@pytest.mark.usefixtures("x64")
def test_golden_curves(case):
    found = golden_curves(case)
    for method, expected in json.loads(GOLDEN.read_text())[case].items():
        np.testing.assert_allclose(found[method], expected, rtol=1e-6, err_msg=method)


def golden_curves(case):
    """Distances of two seeds at steps 0, 20, 40, 60, by method (see golden/regenerate.py)."""
    task, teacher = case.split("/")
    make = {"small-classes": small_classes, "small-numbers": small_numbers}[task]
    options = {"steps": 60, "seeds": [0, 1], "lr": 0.01, "eval_every": 20}
    run = ital.teach(make(), teachers.make(teacher), PAPER, **options)
    return {
        method: run.curves["distance"].sel({"learner": method}).values.tolist()
        for method in learners.PAPER
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": 2**31}, "below"),
        ({"seeds": 0}, "at least one seed"),
        ({"seeds": [1, 1]}, "seed 1 is given twice"),
        ({"seeds": [-1]}, "seeds must lie in"),
        ({"lr": 0.0}, "positive and finite"),
        ({"lr": float("inf")}, "positive and finite"),
        ({"batch_size": 0}, "batch_size"),
        ({"eval_every": 0}, "eval_every"),
        ({"beta": float("nan")}, "finite number"),
        ({"beta": "lots"}, "'auto'"),
        ({"init": "normal:x"}, "uniform:SCALE"),
        ({"learner": [learners.imt(), learners.imt()]}, "method imt is given twice"),
        ({"learner": []}, "at least one method"),
        ({"learner": learners.teacher_aware(view=21)}, "sees 21 examples"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ital.teach(small_classes(), **options)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"task": ital.tasks.regression}, "expected a task such as .*call it"),
        ({"task": 7}, "expected a task such as"),
        (
            {"task": "regression", "teacher": ital.teachers.cooperative},
            "expected a teacher such as .*call it",
        ),
        (
            {"task": "regression", "learner": ital.learners.imt},
            "expected a learner such as .*call it",
        ),
        ({"task": "regression", "learner": ["imt", 3]}, "expected a learner such as .*not 3"),
    ],
)
def test_what_is_no_part_is_refused(parts, message):
    """Without the annotations, which only the tests check."""
    from ital import teaching

    with pytest.raises(ValueError, match=message):
        getattr(teaching.parts, "__wrapped__", teaching.parts)(
            **{"teacher": "random", "learner": "imt", **parts}
        )
