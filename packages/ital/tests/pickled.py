"""Parts and results through pickle: python -m tests.pickled prints what was lost on the way, as
JSON.

The checks of types in the tests wrap functions in ways that cannot be pickled, so this runs in a
process of its own.
"""

import json
import multiprocessing
import pickle

import numpy as np
import optax

import ital
from ital import learners, tasks, teachers
from ital.teaching import described
from tests.newcomer.wrong_parts import network, pool

X = np.random.default_rng(0).normal(size=(60, 4))
ARGUMENTS = {
    "exam": "exam:5:10",
    "boltzmann": "boltzmann:3",
    "switching": "switching:5",
    "synthesis": "synthesis:0.5",
}
TASKS = ("gaussian", "irl-dense", "hypotheses", "kernel")
SHORT = {"steps": 20, "seeds": 2, "lr": 0.01}


def again(part):
    return pickle.loads(pickle.dumps(part))


def taught(parts):
    task, teacher, learner = parts
    return ital.teach(task, teacher, learner, **SHORT)


def parts_by_name():
    for name in teachers.REGISTRY:
        yield f"teacher {name}", teachers.make(ARGUMENTS.get(name, name))
    for name in learners.REGISTRY:
        yield f"learner {name}", learners.make(name)
    yield "model", network()


def parts_are_restored():
    return [name for name, part in parts_by_name() if repr(again(part)) != repr(part)]


def tasks_are_restored(names=TASKS):
    lost = []
    for name in names:
        task = tasks.make(name)
        restored = again(task)
        targets = [np.asarray(each.world(3).teacher.target) for each in (task, restored)]
        if restored.settings != task.settings or not np.array_equal(*targets):
            lost.append(name)
    return lost


def losses_stay_the_same_objects():
    return [
        loss.name
        for loss in (ital.losses.squared, ital.losses.cross_entropy)
        if again(loss) is not loss
    ]


def a_spawned_process_teaches_the_same():
    huber = ital.losses.custom("huber", lambda alpha, y: optax.huber_loss(alpha, y).sum())
    task = tasks.from_arrays(X, y=X[:, 0], loss=huber, quiet=True)
    parts = (task, teachers.cooperative(), [learners.imt(), learners.teacher_aware()])
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        (there,) = workers.map(taught, [parts])
    here = taught(parts)
    same = here.curves.equals(there.curves) and np.array_equal(
        here.predict(X, "ital"), there.predict(X, "ital")
    )
    return [] if same else ["curves or answers"]


def a_result_keeps_its_task():
    mine = tasks.from_pool("mine", pool(), ital.losses.squared, beta=1.0)
    result = taught((mine, "cooperative", "imt"))
    restored = again(result)
    more = taught((restored.task, "cooperative", "imt"))
    kept = {
        "the task": more.curves.equals(result.curves),
        "its description": described(restored.task) == described(mine),
        "the curves": restored.curves.identical(result.curves),
        "the parameters": np.array_equal(restored.parameters["imt"], result.parameters["imt"]),
        "its name": repr(restored) == repr(result),
    }
    return [name for name, same in kept.items() if not same]


CHECKS = (
    parts_are_restored,
    tasks_are_restored,
    losses_stay_the_same_objects,
    a_spawned_process_teaches_the_same,
    a_result_keeps_its_task,
)


def outcome(check):
    """What a check found to be lost, or the error it ended with."""
    try:
        return check()
    except Exception as error:
        return [repr(error)]


if __name__ == "__main__":
    print(json.dumps({check.__name__: outcome(check) for check in CHECKS}))
