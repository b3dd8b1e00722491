"""What a teacher may do beside choosing one example: choose several, remember, relabel, ask, look
ahead.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, losses, tasks, teachers
from ital.errors import InputError
from ital.teachers import Choice, Query, Teacher
from tests.learners.test_two_step import lesson_on, step
from tests.test_gradients import problem
from tests.worlds import numbers_pool, small_classes, small_numbers

RUN = {"steps": 12, "seeds": 2, "batch_size": 5, "eval_every": 1, "lr": 0.05}


def final(task, teacher, learner="imt", **options):
    return np.asarray(ital.teach(task, teacher, learner, **RUN | options).parameters[learner])


@pytest.mark.parametrize("chosen", [[3], [3, 0], [1, 4, 2]])
@pytest.mark.parametrize("view", [3, 5])
@pytest.mark.usefixtures("x64")
def test_the_aware_step_climbs_the_plackett_luce_likelihood(chosen, view):
    params, _, rows, y, _ = problem(losses.cross_entropy, 0)
    lesson = lesson_on(losses.cross_entropy, params, rows, y, 0.1, 0)._replace(
        chosen=jnp.asarray(chosen)
    )
    beta, lr, norms, here = 30.0, 0.1, lesson.here.squared_norms, lesson.here.losses
    others = [int(i) for i in jnp.argsort(lesson.order) if int(i) not in chosen]
    seen = [*chosen, *others[: view - len(chosen)]]

    def log_likelihood(target):
        values = losses.cross_entropy.value(rows.x @ target.T, y)
        scores = beta * (-(lr**2) * norms + 2 * lr * (here - values))
        left = [
            jnp.asarray([i for i in seen if i not in chosen[:place]])
            for place in range(len(chosen))
        ]
        return sum(
            scores[c] - jax.nn.logsumexp(scores[among])
            for c, among in zip(chosen, left, strict=True)
        )

    mean = lesson.here.weighted_sum(jnp.zeros(5).at[jnp.asarray(chosen)].set(1 / len(chosen)))
    naive = params - lr * mean
    after = step(lesson, params, beta, view)
    np.testing.assert_allclose(
        after, naive + lr * jax.grad(log_likelihood)(naive), rtol=1e-9, atol=1e-11
    )


def test_choosing_all_examples_is_learning_from_the_whole_mini_batch():
    everything = final(small_numbers(), "adversarial", choices=5)
    np.testing.assert_allclose(
        everything, final(small_numbers(), "cooperative", "batch"), rtol=2e-5
    )


def test_the_largest_volumes_are_shown_in_order():
    values = jnp.asarray([0.5, 2.0, -1.0, 2.0, 3.0])
    assert teachers.largest(values, 4).tolist() == [4, 1, 3, 0]


def test_choices_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="choices must be at most batch_size"):
        final(small_numbers(), "cooperative", choices=6)
    with pytest.raises(InputError, match="'ital-2' sees 2 examples, but the teacher shows 3"):
        final(small_numbers(), "cooperative", "ital-2", choices=3)
    with pytest.raises(InputError, match="'mine' chooses one example in each step"):
        final(small_numbers(), Teacher("mine", lambda key, view, settings: 0), choices=2)


def in_turn(start):
    """Shows the examples of a mini-batch in turn, from index ``start`` on.

    It remembers the next index.
    """

    def choose(key, view, settings, memory):
        return memory, (memory + 1) % 5, {"shown": memory.astype(float)}

    return Teacher(
        "in-turn", choose, settings=start, init=lambda key, side, settings: settings.astype(int)
    )


def test_a_teacher_remembers_and_its_memory_is_traced():
    task = small_numbers()
    curves = ital.teach(task, in_turn(3.0), ["imt", "ital"], **RUN).curves
    np.testing.assert_array_equal(
        curves["shown"].values[..., 1:], np.broadcast_to((np.arange(12) + 3) % 5, (2, 2, 12))
    )


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda memory: 0, r"must return \(choice, memory, signals\)"),
        (lambda memory: (0, (), {}), "must return a memory of the same form as init"),
    ],
)
def test_a_memory_of_another_form_is_refused(returned, message):
    forgetful = Teacher(
        "mine",
        lambda key, view, settings, memory: returned(memory),
        init=lambda key, side, settings: jnp.zeros(2),
    )
    with pytest.raises(InputError, match=message):
        final(small_numbers(), forgetful)


def test_a_shown_label_replaces_the_true_one():
    zero = Teacher("zero", lambda key, view, settings: Choice(0, jnp.zeros(2)))
    pool = lambda seed: numbers_pool(seed)._replace(labels=np.zeros((40, 2)))  # noqa: E731
    blank = tasks.from_pool("blank", pool, losses.squared, beta=100.0)
    first = Teacher("first", lambda key, view, settings: 0)
    np.testing.assert_allclose(final(small_numbers(), zero), final(blank, first), rtol=1e-6)


def test_a_shown_class_replaces_the_true_one():
    one_hot = Teacher(
        "same", lambda key, view, settings: Choice(0, jax.nn.one_hot(view.examples.labels[0], 3))
    )
    first = Teacher("first", lambda key, view, settings: 0)
    for method in ("imt", "ital"):
        np.testing.assert_allclose(
            final(small_classes(), one_hot, method),
            final(small_classes(), first, method),
            rtol=2e-5,
            atol=1e-6,
        )


def examiner(every):
    """Asks about rows 0 to 3 every few steps, and records the first answer."""

    def choose(key, view, settings, memory):
        assert view.volumes is None
        assert view.feedback is None
        answers = view.answers
        return 0, memory, {"first": answers.outputs[0, 0], "given": answers.given.astype(float)}

    def ask(key, side, view, settings, memory):
        return Query(jnp.arange(4), view.step % settings == 0, 4)

    return Teacher(
        "examiner", choose, every, init=lambda *_: (), ask=ask, feedback=False, needs=("questions",)
    )


def test_answers_are_the_learners_outputs_and_are_counted():
    task = small_numbers()
    curves = ital.teach(task, examiner(3), "imt", **RUN).curves
    given = np.arange(12) % 3 == 0
    np.testing.assert_array_equal(curves["given"].values[0, 0, 1:], given)
    np.testing.assert_array_equal(curves["answers"].values[0, 0], [0, *4 * np.cumsum(given)])
    start = np.asarray(ital.session(task, "imt", seed=1, batch_size=5).params)
    expected = (start @ np.append(numbers_pool(1).learner_x[0], 1.0))[0]
    np.testing.assert_allclose(curves["first"].values[0, 1, 1], expected, rtol=1e-5)
    assert (curves["first"].values[0, :, 1:][:, ~given] == 0).all()


def test_a_teacher_that_looks_ahead_sees_the_next_mini_batches():
    def choose(key, view, learner, settings, memory):
        here, coming = (
            learner.gradients(learner.params, 0).losses,
            learner.gradients(learner.params, 2).losses,
        )
        # A learner that never moves: the losses seen two steps ago are those of the present
        # mini-batch.
        gap = jnp.where(view.step < 2, 0.0, jnp.max(jnp.abs(here - memory[0])))
        return 0, (memory[1], coming), {"gap": gap, "moved": jnp.max(jnp.abs(here - memory[1]))}

    far = Teacher(
        "far",
        choose,
        omniscient=True,
        ahead=3,
        init=lambda key, side, settings: (jnp.zeros(5), jnp.zeros(5)),
    )
    still = learners.Learner(
        "still", "Still", learners.Rule(lambda *_: (), lambda _, __, params, ___: keep(params))
    )
    curves = ital.teach(small_numbers(), far, still, **RUN).curves
    assert (curves["gap"].values[..., 1:] == 0).all()
    assert (curves["moved"].values[..., 2:] > 0.01).all()


def keep(params):
    return learners.Update(params)


def test_parts_that_a_task_does_not_support_are_refused_in_a_line():
    with pytest.raises(
        InputError, match="teacher 'examiner' makes no sense on task 'irl': it needs questions"
    ):
        ital.teach(tasks.irl(np.eye(3)), examiner(3), "imt", **RUN)
