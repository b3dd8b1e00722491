"""``ital features check``: the data card of a feature file, with recomputed accuracies."""

from collections.abc import Iterator
from pathlib import Path

from ital.errors import InputError
from ital_paper.features._build import with_extra
from ital_paper.features._file import Features, accuracy, load


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
        yield from (f"  {line}" for line in with_extra("_equations").check_equations(file))
        return
    yield from (f"  {card[note]}" for note in ("extractors", "caution", "layer") if note in card)
    of_rows = card.get("of_rows", len(loaded.labels))
    rows = len(loaded.labels)
    test_rows = len(loaded.test_labels)
    yield f"  {rows} of {of_rows} training rows, {test_rows} test rows"
    for network, reached in card.get("accuracy", {}).items():
        role = "learner" if network == card["learner"] else "teacher"
        layer = loaded.last_layers[network]
        when_built = ", ".join(map(_score_in_words, reached, reached.values()))
        yield (
            f"  {role} {network}: {layer.shape[1] - 1} features; "
            f"test accuracy when built: {when_built}"
        )
        on_training = accuracy(loaded.views[network], layer, loaded.labels)
        line = f"    now, on these training rows: {on_training:.2%}"
        recomputed = _recomputed(loaded, network)
        for score, now in recomputed.items():
            line += f"; on all test rows: {_score_in_words(score, now)}"
        yield line
        # The line comes before the error, so that the user sees all accuracies.
        for score, now in recomputed.items():
            # Views are stored in half precision: a few rows may change sides.
            tolerance = max(0.005, 3 / len(loaded.test_labels))
            if abs(now - reached[score]) > tolerance:
                raise InputError(
                    f"{file}: {network} reaches {now:.2%} ({score}), "
                    f"but its card says {reached[score]:.2%}"
                )


def _score_in_words(score: str, value: float) -> str:
    return f"{score.removeprefix('test_')} {value:.2%}"


def _recomputed(loaded: Features, network: str) -> dict[str, float]:
    """Return the accuracies on the card, computed again; none without a view of the test rows."""
    if network not in loaded.test_views:
        return {}
    view, layer = loaded.test_views[network], loaded.last_layers[network]
    # A score ends in the number of largest outputs that count: test_top5.
    return {
        score: accuracy(view, layer, loaded.test_labels, int(score[-1]))
        for score in loaded.card["accuracy"][network]
    }
