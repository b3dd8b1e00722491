"""Bad input in Python: python -m tests.newcomer.bad_inputs prints each error message, as JSON."""

import json

import numpy as np

import ital
from ital.experiments import Settings, run, sweep
from tests.newcomer.wrong_parts import of_pool, pool, task, teach, told

NAN = float("nan")


def arrays(**changes):
    return lambda: of_pool(pool(**changes))


CASES = {
    "task=None": (lambda: ital.teach(None), "expected a task such as"),
    "task not called": (lambda: ital.teach(ital.tasks.regression), "it is a function: call it"),
    "task misspelt": (lambda: ital.teach("regresion"), "did you mean 'regression'"),
    "teacher=None": (teach(teacher=None), "expected a teacher such as"),
    "teacher=3": (teach(teacher=3), "expected a teacher such as .*, not 3"),
    "teacher misspelt": (teach(teacher="adversary"), "did you mean 'adversarial'"),
    "no learner": (teach(learner=[]), "at least one method is needed"),
    "learner twice": (teach(learner=["imt", "imt"]), "method imt is given twice"),
    "learner with an argument": (teach(learner="ital:5"), "takes no argument"),
    "steps=0": (teach(steps=0), "steps must be at least 1"),
    "steps=1e3": (teach(steps=1e3), "steps must be a whole number, not 1000.0"),
    "steps=True": (teach(steps=True), "steps must be a whole number, not True"),
    "steps='10'": (teach(steps="10"), "steps must be a whole number, not '10'"),
    "seeds=0": (teach(seeds=0), "at least one seed is needed"),
    "seeds=-1": (teach(seeds=-1), "at least one seed is needed"),
    "seeds=None": (teach(seeds=None), "seeds must be a whole number or a list of them, not None"),
    "seeds=[1, 1]": (teach(seeds=[1, 1]), "seed 1 is given twice"),
    "seeds=[-1]": (teach(seeds=[-1]), r"seeds must lie in \[0, 2\*\*31\), not -1"),
    "lr=0": (teach(lr=0), "lr .* must be positive and finite, not 0"),
    "lr=None": (teach(lr=None), "lr .* must be positive and finite, not None"),
    "lr='fast'": (teach(lr="fast"), "lr .* must be positive and finite, not 'fast'"),
    "beta='much'": (teach(beta="much"), "beta must be a finite number or 'auto', not 'much'"),
    "batch_size=0": (teach(batch_size=0), "batch_size must be at least 1"),
    "eval_every=0": (teach(eval_every=0), "eval_every must be at least 1"),
    "init='zero'": (teach(init="zero"), "start 'zero' must be uniform"),
    "init='normal:much'": (teach(init="normal:much"), "start 'normal:much' must be uniform"),
    "form='leap'": (teach(form="leap"), "leap"),
    "form=3": (teach(form=3), "form must be rate, .*, not 3"),
    "devices=0": (
        teach(devices=0),
        "devices must be a whole number of at least 1, or 'all', not 0",
    ),
    "view of none": (lambda: ital.learners.teacher_aware(view=0), "view must be at least 1"),
    "decay of all": (
        lambda: ital.learners.teacher_aware(beta_decay=1.0),
        r"beta_decay must lie in \[0, 1\)",
    ),
    "label_noise='much'": (
        lambda: ital.tasks.regression(label_noise="much"),
        "label noise must be a probability",
    ),
    "points=1": (lambda: ital.tasks.regression(points=1), "points >= 2"),
    "dim='3'": (lambda: ital.tasks.regression(dim="3"), "dim must be a whole number, not '3'"),
    "size=2.0": (lambda: ital.tasks.irl_dense(size=2.0), "size must be a whole number, not 2.0"),
    "labels not finite": (
        arrays(labels=np.full((10, 1), NAN)),
        "labels holds values that are not finite",
    ),
    "labels as text": (
        arrays(labels=np.array(["a"] * 10)),
        "labels holds values that are not finite numbers",
    ),
    "unpaired views": (arrays(teacher_x=np.zeros((9, 3))), "views are paired row by row"),
    "target without bias": (arrays(teacher_target=np.zeros((1, 3))), "the bias last"),
    "target as list": (
        lambda: ital.teach(of_pool(pool(learner_target=[1.0])), "random", "imt"),
        "learner_target has",
    ),
    "loss as function": (
        lambda: ital.tasks.from_arrays(np.eye(4), y=np.eye(4)[:, 0] / 3, loss=lambda alpha, y: 0.0),
        "loss must be one of ital.losses, or your own by ital.losses.custom",
    ),
    "loss by name": (
        lambda: ital.tasks.from_arrays(np.eye(4), y=np.eye(4)[:, 0] / 3, loss="huber"),
        "loss must be one of ital.losses",
    ),
    "learner as teacher": (
        teach(teacher=ital.learners.imt()),
        "not Learner.*; it is a learner: give it as learner=",
    ),
    "method's name as teacher": (
        teach(teacher="ital"),
        "'ital' is a learner, not a teacher: give it as learner='ital'",
    ),
    "teacher's name as learner": (
        teach(learner="random"),
        "'random' is a teacher, not a learner: give it as teacher=",
    ),
    "methods as text": (
        lambda: run(Settings(task="regression", methods="imt,ital"), "out"),
        r"methods must be a list of names, \['imt', 'ital'\], not the text",
    ),
    "teacher of settings": (
        lambda: run(Settings(task="regression", teacher="ital"), "out"),
        "'ital' is a learner",
    ),
    "dim=10**7": (
        lambda: ital.tasks.regression(dim=10**7),
        "regression with 10000000 features .* GiB are free",
    ),
    "per_class=10**12": (
        lambda: ital.tasks.gaussian(per_class=10**12),
        "gaussian with .* GiB are free: take fewer",
    ),
    "batch_size=10**6": (teach(batch_size=10**6), "mini-batches of 1000000 examples need at least"),
    "planner:10**9": (
        teach(teacher="planner:1000000000"),
        "a planner sees at most 100 mini-batches ahead",
    ),
    "load None": (lambda: ital.load(None), "folder must be a path, not None"),
    "load text": (
        lambda: ital.load(__file__),
        "bad_inputs.py holds no run: give a folder that ital run wrote",
    ),
    "load_session of nothing": (
        lambda: ital.load_session("nowhere"),
        "cannot read the live session nowhere",
    ),
    "save without a name": (
        lambda: ital.Result(None, None, {}).save(""),
        "the name of the folder is empty",
    ),
    "animate another format": (
        lambda: ital.Watched.animate(None, "a.xyz"),
        "an animation is a GIF: name the file a.gif, not a.xyz",
    ),
    "unequal pairs": (
        lambda: ital.statistics.paired([1, 2], [1, 2, 3]),
        r"not of shapes \(2,\) and \(3,\)",
    ),
    "unequal ranks": (
        lambda: ital.statistics.wilcoxon([1, 2], [1, 2, 3]),
        "pairs need two samples of one length",
    ),
    "unequal spreads": (
        lambda: ital.statistics.spread_ratio([1, 2, 4], [1, 2]),
        "pairs need two samples",
    ),
    "p of 2": (lambda: ital.statistics.holm([2, 0.5]), "p-values lie between 0 and 1"),
    "p below 0": (lambda: ital.statistics.holm([0.1, -1]), "p-values lie between 0 and 1"),
    "settings misspelt": (
        lambda: run(Settings(task="regresion"), "out"),
        "did you mean 'regression'",
    ),
    "settings' methods": (
        lambda: run(Settings(task="regression", methods=()), "out"),
        "at least one method",
    ),
    "settings' seeds": (
        lambda: run(Settings(task="regression", seeds=1.5), "out"),
        "seeds must be a whole number",
    ),
    "first_seed": (
        lambda: run(Settings(task="regression", first_seed=0.5), "out"),
        "first_seed must be a whole",
    ),
    "seeds_per_cell": (
        lambda: run(Settings(task="regression"), "out", seeds_per_cell=0),
        "at least 1, not 0",
    ),
    "sweep of nothing": (lambda: sweep(Settings(task="regression"), [], [1.0], "out"), "lr"),
    "sweep of text": (
        lambda: sweep(Settings(task="regression"), ["a"], [1.0], "out"),
        "must be a finite number",
    ),
    "frames=0": (lambda: ital.watch(task(), frames=0, steps=10), "frames must be"),
    "seed=0.5": (lambda: ital.watch(task(), seed=0.5, steps=10), "seeds must be a whole number"),
}

if __name__ == "__main__":
    print(json.dumps({name: told(call) for name, (call, _) in CASES.items()}))
