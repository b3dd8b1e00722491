import numpy as np
import pytest

from ital.errors import InputError
from ital_study import Mind
from ital_study.data.table import MEASURES
from ital_study.simulation import arms, lanes
from ital_study.simulation.arms import MATCHED


def decrease(steps, teacher, learner, name):
    rows = steps[
        (steps["teacher"] == teacher) & (steps["learner"] == learner) & (steps["map"] == name)
    ]
    first = rows[rows["step"] == 1].set_index("participant")["distance_before"]
    return first - rows[rows["step"] == 30].set_index("participant")["distance"]


def test_known_values(steps):
    """Of 20 simulated participants on map A: see docs/study/index.md."""
    assert 5.5 < decrease(steps, "machine", "aware", "A").mean() < 6.9
    assert 0.7 < decrease(steps, "machine", "aware", "A").std() < 1.5
    assert 0.2 < decrease(steps, "machine", "naive", "A").mean() < 0.3
    assert -1.8 < decrease(steps, "random", "aware", "A").mean() < 0.4
    means = [decrease(steps, "machine", "aware", name).mean() for name in "ABCDE"]
    np.testing.assert_allclose(means, [6.14, 6.26, 6.24, 6.48, 4.84], atol=4 * 1.05 / np.sqrt(20))


@pytest.mark.parametrize("teacher", ["machine", "random"])
@pytest.mark.parametrize(
    ("name", "learner", "number"), [("A", "aware", 2), ("D", "naive", 1), ("E", "aware", 19)]
)
def test_the_arms_are_the_rules_step_by_step(rules, steps, teacher, name, learner, number):
    rows = steps[
        (steps["teacher"] == teacher)
        & (steps["learner"] == learner)
        & (steps["map"] == name)
        & (steps["participant"] == number)
    ]
    assert rows["step"].tolist() == list(range(1, 31))
    arrows = rules.candidates(number, name)
    beliefs = [mind.belief for mind in rules.replay(number, name, learner, rows["choice"].tolist())]
    for i, row in enumerate(rows.to_dict("records")):
        assert row["candidates"] == str([list(arrow) for arrow in arrows[i]])
        assert (row["cell"], row["action"]) == arrows[i][row["choice"]]
        scores = rules.volumes(name, beliefs[i], arrows[i])
        assert scores[row["machine_choice"]] == pytest.approx(scores.max(), abs=1e-5)
        before, after = rules.measures(name, beliefs[i]), rules.measures(name, beliefs[i + 1])
        for measure in MEASURES:
            if measure != "reward":  # a tie in the greedy policy may fall the other way
                assert row[f"{measure}_before"] == pytest.approx(before[measure], abs=2e-3), measure
                assert row[measure] == pytest.approx(after[measure], abs=2e-3), measure
    close = np.isclose(
        rows["reward"], [rules.measures(name, w)["reward"] for w in beliefs[1:]], rtol=1e-3
    )
    assert close.mean() > 0.9
    if teacher == "machine":
        assert (rows["choice"] == rows["machine_choice"]).all()


def test_no_number_depends_on_who_else_takes_part(config, rules, ran, teachers):
    few = arms.run(config, [7, 3], teachers[1:], ("aware",), rules=rules)
    arm = ran.arms.index(("random", "aware"))
    for i, number in enumerate((7, 3)):
        where = ran.numbers.index(number)
        np.testing.assert_array_equal(few.trace.choice[i, :, 0], ran.trace.choice[where, :, arm])
        np.testing.assert_array_equal(few.trace.beliefs[i, :, 0], ran.trace.beliefs[where, :, arm])


def test_the_matched_control_goes_the_naive_way_as_far_as_the_aware_one(rules, ran):
    arm = ran.arms.index(("machine", MATCHED))
    for i, name in ((0, "A"), (4, "E")):
        beliefs, choices = ran.trace.beliefs[2, i, arm], ran.trace.choice[2, i, arm]
        arrows = rules.candidates(ran.numbers[2], name)
        for t in range(0, 30, 7):
            moved = beliefs[t + 1] - beliefs[t]
            naive, aware = (
                rules.update(name, learner, Mind(beliefs[t]), arrows[t], int(choices[t])).belief
                - beliefs[t]
                for learner in ("naive", "aware")
            )
            length = np.linalg.norm(aware)
            np.testing.assert_allclose(moved, length * naive / np.linalg.norm(naive), atol=5e-3)
            assert ran.trace.length[2, i, arm, t] == pytest.approx(length, rel=1e-3)
            assert length > 10 * np.linalg.norm(naive) or length < 1e-2


def test_the_naive_robot_hardly_moves_whoever_teaches(ran):
    for teacher in ("machine", "random"):
        lengths = ran.trace.length[:, :, ran.arms.index((teacher, "naive"))]
        assert lengths.sum(axis=-1).max() < 0.6


def test_a_boltzmann_teacher_lies_between_the_others(config, rules):
    rational = [
        arms.teacher(name, default=1.0) for name in ("boltzmann:1e6", "boltzmann:30", "boltzmann:0")
    ]
    ran = arms.run(config, [1, 2, 3, 4], rational, ("aware",), rules=rules)
    agree = (ran.trace.choice == ran.trace.machine_choice).mean(axis=(0, 1, 3))
    assert agree[0] == 1
    assert 0.2 < agree[1] < 0.9
    assert agree[2] == pytest.approx(0.1, abs=0.05)


def test_boltzmann_choices_have_the_probabilities_of_a_softmax():
    import jax

    volumes, rho, noise = (
        jax.numpy.array([0.0, 0.1, 0.3, -0.2]),
        jax.numpy.float32(5),
        jax.numpy.float32(1),
    )
    draw = jax.jit(jax.vmap(lambda key: lanes.choose(key, volumes, rho, noise)))
    drawn = (
        np.bincount(np.asarray(draw(jax.random.split(jax.random.key(1), 20_000))), minlength=4)
        / 20_000
    )
    expected = np.exp(rho * volumes) / np.exp(rho * volumes).sum()
    np.testing.assert_allclose(drawn, expected, atol=0.015)


def test_random_teachers_throw_their_dice_anew_for_each_robot(ran):
    naive, aware = (
        ran.trace.choice[:, :, ran.arms.index(("random", one))] for one in ("naive", "aware")
    )
    assert (naive == aware).mean() == pytest.approx(0.1, abs=0.03)
    counts = np.bincount(naive.ravel(), minlength=10) / naive.size
    np.testing.assert_allclose(counts, 0.1, atol=0.02)


def test_orders_of_simulated_participants_are_balanced(steps):
    first = steps[(steps["robot"] == 1) & (steps["step"] == 1) & (steps["teacher"] == "machine")]
    assert first.groupby("map")["participant"].nunique().eq(20).all()
    assert (
        first.groupby("map")["learner"].apply(lambda s: (s == "aware").sum()).between(9, 11).all()
    )
    assert (steps["mode"] == "simulated").all()
    assert not (steps["teacher"] == "human").any()


@pytest.mark.parametrize(
    ("name", "rationality", "message"),
    [
        ("human", None, "teacher must be machine, random, boltzmann or boltzmann:RHO, not 'human'"),
        ("machine:3", None, "teacher must be machine"),
        ("boltzmann:x", None, "must be a finite number, not 'x'"),
        ("boltzmann:inf", None, "must be a finite number, not 'inf'"),
        ("random", 3.0, "a rationality needs the plain teacher boltzmann, not 'random'"),
        ("boltzmann:3", 3.0, "a rationality needs the plain teacher boltzmann"),
    ],
)
def test_teachers_that_there_are_not(name, rationality, message):
    with pytest.raises(InputError, match=message):
        arms.teacher(name, rationality, default=1.0)


def test_names_of_teachers():
    assert arms.teacher("boltzmann", default=10000.0).name == "boltzmann:10000"
    assert arms.teacher("boltzmann", 0.5, default=1.0).name == "boltzmann:0.5"


def test_nobody_is_refused(config, rules, teachers):
    with pytest.raises(InputError, match="at least one participant"):
        arms.run(config, 0, teachers, rules=rules)
    with pytest.raises(
        InputError,
        match=r"unknown learner 'clever': choose from naive, aware, adaptive, .* and imt",
    ):
        arms.run(config, 1, teachers, ("clever",), rules=rules)


def test_choices_shown_again_give_the_same_robots(rules, ran):
    for learner in ("naive", "aware", MATCHED):
        arm = ran.arms.index(("machine", learner))
        taught = [
            arms.Taught(
                ran.numbers[i], name, ran.trace.choice[i, "ABCDE".index(name), arm].tolist()
            )
            for i, name in ((0, "B"), (5, "A"), (2, "B"))
        ]
        again = arms.replay(rules, taught, learner)
        for k, (i, m) in enumerate(((0, 1), (5, 0), (2, 1))):
            np.testing.assert_array_equal(again.length[k], ran.trace.length[i, m, arm])
            np.testing.assert_array_equal(
                again.measures["distance"][k], ran.measures["distance"][i, m, arm]
            )


@pytest.fixture(scope="module")
def three(config, rules, teachers):
    """Twelve participants with all three robots, of a study that has two."""
    return arms.run(config, 12, teachers, ("naive", "aware", "adaptive"), rules=rules)


def test_the_adaptive_robot_is_a_lane_of_its_own_program(rules, three):
    """Every step, with its memory, equals that of the rules; the other robots are unaffected."""
    for teacher, name, i in (("machine", "A", 1), ("random", "D", 7)):
        arm, where = three.arms.index((teacher, "adaptive")), "ABCDE".index(name)
        replayed = rules.replay(
            three.numbers[i], name, "adaptive", three.trace.choice[i, where, arm].tolist()
        )
        np.testing.assert_allclose(
            three.trace.beliefs[i, where, arm], [mind.belief for mind in replayed], atol=2e-3
        )


def test_other_robots_do_not_notice_the_adaptive_one(ran, three):
    for teacher in ("machine", "random"):
        for learner in ("naive", "aware"):
            mine, theirs = three.arms.index((teacher, learner)), ran.arms.index((teacher, learner))
            np.testing.assert_array_equal(
                three.trace.beliefs[:, :, mine], ran.trace.beliefs[:12, :, theirs]
            )


def test_what_the_adaptive_robot_learns(three):
    """With a helpful teacher it usually learns more than the naive robot.

    With a random one about as little.
    """
    distance = three.measures["distance"]
    nearer = {arm: distance[:, :, i, 0] - distance[:, :, i, -1] for i, arm in enumerate(three.arms)}
    with_machine, with_dice = nearer["machine", "adaptive"], nearer["random", "adaptive"]
    assert with_machine.mean(axis=0).min() > 1  # on every map; the naive robot's are about 0.25
    assert (with_machine > nearer["machine", "naive"]).mean() > 0.7
    assert (
        with_machine < nearer["machine", "naive"] - 0.2
    ).mean() < 0.15  # 5 % of 1000: trust can go astray
    assert (with_dice - nearer["random", "naive"]).mean(axis=0).min() > -0.1
    # Random choices mislead the aware robot.
    assert with_dice.min() > -0.5 > nearer["random", "aware"].min()


def test_choices_shown_again_give_the_same_adaptive_robot(rules, three):
    arm = three.arms.index(("random", "adaptive"))
    taught = [
        arms.Taught(three.numbers[i], "B", three.trace.choice[i, 1, arm].tolist()) for i in (0, 4)
    ]
    again = arms.replay(rules, taught, "adaptive")
    np.testing.assert_array_equal(
        again.measures["distance"], three.measures["distance"][[0, 4], 1, arm]
    )


def test_three_robots_have_three_places(config, three):
    table = arms.table(config, three)
    first = table[(table["step"] == 1) & (table["teacher"] == "machine")]
    for (_, order, name), rows in first.groupby(["participant", "order", "map"]):
        by_place = rows.set_index("robot")["learner"]
        assert sorted(by_place.index) == [1, 2, 3]
        assert by_place[1] == order.split("-")["ABCDE".index(name)]
        assert (by_place[1], by_place[2]) in [
            ("naive", "aware"),
            ("aware", "adaptive"),
            ("adaptive", "naive"),
        ]
