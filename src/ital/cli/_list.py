"""``ital list``."""

import typer

from ital._registry import describe


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", epilog="Example: ital list")(list_parts)


def list_parts() -> None:
    """List tasks, teachers and methods, one line each."""
    from ital import learners, tasks, teachers

    for title, registry in (("Tasks", tasks.REGISTRY), ("Teachers", teachers.REGISTRY), ("Methods", learners.REGISTRY)):
        print(title)
        for name, make in registry.items():
            print(f"  {name:<20} {describe(make)}")
        if registry is learners.REGISTRY:
            print(f"  {'ital-M':<20} The same for any M from 1 to the batch size.")
        print()
