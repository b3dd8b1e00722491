"""``ital features check``: the data card of a feature file, with recomputed accuracies."""

from collections.abc import Iterator
from pathlib import Path

from ital.errors import InputError
from ital_paper.features._build import with_extra
from ital_paper.features._file import accuracy, load


def check(file: Path) -> Iterator[str]:
    """Yield lines about a feature file, with its accuracies recomputed.

    Args:
        file: the file.

    Yields:
        The lines.

    Raises:
        InputError: if the last layers do not reach the accuracies on the card.
    """
    loaded = load(file)
    card = loaded.card
    yield f"{file}: {card['data']}"
    if card["name"] == "equation":
        yield from (f"  {line}" for line in with_extra("_equations").check(file))
        return
    yield from (f"  {card[note]}" for note in ("extractors", "caution", "layer") if note in card)
    of_rows = card.get("of_rows", len(loaded.labels))
    yield f"  {len(loaded.labels)} of {of_rows} training rows, {len(loaded.test_labels)} test rows"
    for network, reached in card.get("accuracy", {}).items():
        role = "learner" if network == card["learner"] else "teacher"
        layer = loaded.last_layers[network]
        then = ", ".join(
            f"{score.removeprefix('test_')} {value:.2%}" for score, value in reached.items()
        )
        yield f"  {role} {network}: {layer.shape[1] - 1} features; test accuracy when built: {then}"
        line = f"    now, on these training rows: {accuracy(loaded.views[network], layer, loaded.labels):.2%}"
        wrong = []
        for score, value in reached.items() if network in loaded.test_views else ():
            now = accuracy(loaded.test_views[network], layer, loaded.test_labels, int(score[-1]))
            line += f"; on all test rows: {score.removeprefix('test_')} {now:.2%}"
            if abs(now - value) > max(0.005, 3 / len(loaded.test_labels)):
                wrong.append(
                    f"{file}: {network} reaches {now:.2%} ({score}), but its card says {value:.2%}"
                )
        yield line
        if wrong:
            raise InputError(wrong[0])
