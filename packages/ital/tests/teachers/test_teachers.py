import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, ortho_group

from ital import losses, tasks, teachers
from ital.errors import InputError
from ital.teachers import LearnerView, TeacherView
from tests.worlds import classes_pool

VOLUMES = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=8)


def view(volumes, step=0):
    return TeacherView(
        jnp.asarray(volumes),
        jnp.zeros((len(volumes), 1)),
        None,
        None,
        0.1,
        jnp.asarray(step),
        jnp.asarray(10),
    )


def choose(teacher, volumes, key=0):
    settings = teacher.resolve(teacher.settings, 1.0)
    return int(
        teacher.choose(teacher.prepare(jax.random.key(key), len(volumes)), view(volumes), settings)
    )


@given(volumes=VOLUMES)
def test_cooperative_takes_the_first_largest_and_adversarial_the_first_smallest(volumes):
    assert choose(teachers.cooperative(), volumes) == volumes.index(max(volumes))
    assert choose(teachers.adversarial(), volumes) == volumes.index(min(volumes))


@given(volumes=VOLUMES)
def test_omniscient_looks_at_the_exact_volumes(volumes):
    learner = LearnerView(jnp.asarray(volumes), None, None, None)
    teacher = teachers.omniscient()
    noise = teacher.prepare(jax.random.key(0), len(volumes))
    chosen = teacher.choose(noise, view([-v for v in volumes]), learner, teacher.settings)
    assert int(chosen) == volumes.index(max(volumes))


@pytest.mark.parametrize(
    ("teacher", "expected"),
    [
        (teachers.random(), [1 / 3, 1 / 3, 1 / 3]),
        (teachers.boltzmann(2.0), np.exp([0, 2, 1]) / np.exp([0, 2, 1]).sum()),
        (teachers.boltzmann("-2"), np.exp([0, -2, -1]) / np.exp([0, -2, -1]).sum()),
        (teachers.boltzmann(), np.exp([0, 1, 0.5]) / np.exp([0, 1, 0.5]).sum()),
    ],
)
def test_random_choices_have_their_probabilities(teacher, expected):
    settings = teacher.resolve(teacher.settings, -1.0)
    keys = jax.random.split(jax.random.key(1), 6000)
    chosen = jax.vmap(
        lambda key: teacher.choose(teacher.prepare(key, 3), view([0.0, 1.0, 0.5]), settings)
    )(keys)
    assert chisquare(np.bincount(chosen, minlength=3), 6000 * np.asarray(expected)).pvalue > 1e-3


def test_signs_fit_the_teachers():
    helpful = ("cooperative", "omniscient", "random", "boltzmann", "switching", "mixture")
    assert [teachers.make(name).sign for name in (*helpful, "adversarial")] == [
        1,
        1,
        1,
        1,
        1,
        1,
        -1,
    ]
    assert teachers.make("boltzmann:-3").sign == -1
    assert teachers.make("boltzmann:500").name == "boltzmann:500"


@pytest.mark.parametrize("bad", ["boltzmann:x", "boltzmann:inf", "boltzmann:nan"])
def test_rationality_must_be_a_finite_number(bad):
    with pytest.raises(ValueError, match="finite number"):
        teachers.make(bad)


@given(seed=st.integers(0, 1000))
@pytest.mark.usefixtures("x64")
def test_rotating_the_teachers_view_changes_neither_scores_nor_choices(seed):
    pool = classes_pool(seed)
    turn = ortho_group.rvs(pool.teacher_x.shape[1], random_state=np.random.default_rng(seed))
    target = pool.teacher_target.copy()
    target[:, :-1] = target[:, :-1] @ turn
    turned = pool._replace(teacher_x=pool.teacher_x @ turn, teacher_target=target)
    alpha = jnp.asarray(np.random.default_rng(seed).normal(size=(20, 3)))
    volumes = []
    for data in (pool, turned):
        task = tasks.from_pool("turned", data, losses.cross_entropy, beta=1.0)
        side = jax.tree.map(jnp.asarray, task.world(0).teacher)
        examples = task.rules.show(side.examples, jnp.arange(20))
        volumes.append(task.rules.volumes(alpha, examples, side.target, 0.1))
    np.testing.assert_allclose(*volumes, rtol=1e-9, atol=1e-12)
    assert int(jnp.argmax(volumes[0])) == int(jnp.argmax(volumes[1]))


def test_a_switching_teacher_helps_until_the_step_and_then_does_not():
    volumes = [0.0, 2.0, -1.0]

    def at(name, step):
        teacher = teachers.make(name)
        noise = teacher.prepare(jax.random.key(0), len(volumes))
        return int(teacher.choose(noise, view(volumes, step), teacher.settings))

    assert [at("switching", step) for step in (0, 4, 5, 9)] == [1, 1, 2, 2]  # half-way of ten
    assert [at("switching:3", step) for step in (2, 3)] == [1, 2]
    teacher = teachers.make("switching:3:random")
    keys = jax.random.split(jax.random.key(1), 300)
    after = jax.vmap(
        lambda key: teacher.choose(teacher.prepare(key, 3), view(volumes, 3), teacher.settings)
    )(keys)
    assert set(np.asarray(after).tolist()) == {0, 1, 2}
    assert at("switching:3:random", 2) == 1


def test_a_mixture_helps_as_often_as_it_says():
    teacher = teachers.make("mixture:0.7")
    keys = jax.random.split(jax.random.key(0), 4000)
    chosen = jax.vmap(
        lambda key: teacher.choose(
            teacher.prepare(key, 4), view([0.0, 1.0, 0.0, 0.0]), teacher.settings
        )
    )(keys)
    assert abs(float(np.mean(np.asarray(chosen) == 1)) - (0.7 + 0.3 / 4)) < 0.03


@pytest.mark.parametrize(
    "name", ["switching:soon", "switching:3:friendly", "switching:-1", "mixture:2", "mixture:often"]
)
def test_teachers_that_change_are_refused_where_they_make_no_sense(name):
    with pytest.raises(InputError):
        teachers.make(name)


def test_a_random_teacher_does_not_look_at_volumes_that_are_not_finite():
    teacher = teachers.random()
    keys = jax.random.split(jax.random.key(2), 300)
    hidden = view([np.inf, 0.0, np.nan])
    chosen = jax.vmap(
        lambda key: teacher.choose(teacher.prepare(key, 3), hidden, teacher.settings)
    )(keys)
    assert set(np.asarray(chosen).tolist()) == {0, 1, 2}


def test_text_that_a_constructor_cannot_read_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(
        teachers.REGISTRY, "mine", lambda share=0.5: teachers.Teacher(f"mine:{float(share)}", None)
    )
    assert teachers.make("mine:0.25").name == "mine:0.25"
    with pytest.raises(
        InputError, match="teacher 'mine' refused 'abc': could not convert string to float: 'abc'"
    ):
        teachers.make("mine:abc")


@pytest.mark.parametrize(
    "name", ["random", "boltzmann", "boltzmann:5", "mixture", "switching:3:random"]
)
def test_what_noisy_teachers_once_taught_is_not_mixed_with_what_they_teach(name):
    """Their draws changed with version 2: stored lanes of version 1 are computed again."""
    assert teachers.make(name).version == 2
    assert teachers.make("switching:3").version == teachers.make("cooperative").version == 1
