"""``ital list``."""

from typing import Annotated

import typer

from ital.errors import InputError
from ital.tools.registry import describe


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", epilog="Example: ital list mnist-20")(list_parts)


def list_parts(
    task: Annotated[
        str | None, typer.Argument(help="A task to describe (default: list everything).")
    ] = None,
    awareness: Annotated[
        bool,
        typer.Option(
            "--awareness", help="With TASK: also what awareness amounts to at the start (3 seeds)."
        ),
    ] = False,
) -> None:
    """List tasks, teachers and methods, one line each; with TASK, describe that task."""
    if task is not None:
        _describe_task(task)
        if awareness:
            _describe_awareness(task)
        return
    if awareness:
        raise InputError("--awareness needs a TASK: ital list TASK --awareness")
    from ital import learners, tasks, teachers

    for title, registry in (
        ("Tasks", tasks.REGISTRY),
        ("Teachers", teachers.REGISTRY),
        ("Methods", learners.REGISTRY),
    ):
        print(title)
        for name, make in registry.items():
            print(f"  {name:<20} {describe(make)}")
        if registry is learners.REGISTRY:
            print(f"  {'ital-M':<20} The same for any M from 1 to the batch size.")
        print()


def _describe_awareness(task: str) -> None:
    """Print how sharp q is, and how long the awareness step is."""
    from ital import teaching

    for line in teaching.awareness_in_words(teaching.awareness(task, seeds=3)):
        print(f"  {'awareness':<20} {line}")


def _describe_task(name: str) -> None:
    """Print what a task is, its numbers, and how well the learner's view can express the target."""
    from ital import tasks, theory

    task = tasks.make(name)
    # A task's β is a number, or "auto".
    facts = {
        "what": describe(tasks.REGISTRY[name]),
        "β": f"{task.beta:g}" if isinstance(task.beta, float) else task.beta,
        "start": str(task.init),
        "metrics": ", ".join(task.metrics),
        "methods": ", ".join(task.methods) or "the eight of the paper",
        "offers": ", ".join(task.offers) or "nothing that a teacher or learner may need",
    }
    if task.rules.risk is not None:
        risk = theory.teaching_risk(task)
        meaning = "the part of the target that the learner's view cannot express"
        facts["teaching risk"] = f"{risk:.3g} (seed 0): {meaning}"
    print(name)
    for what, words in facts.items():
        print(f"  {what:<20} {words}")
