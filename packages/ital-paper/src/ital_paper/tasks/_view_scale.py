"""Choose the scale of a feature file's views by the paper's rule for β."""

import math
from collections.abc import Sequence

import numpy as np

from ital import losses
from ital.errors import InputError
from ital.tasks import from_pool
from ital.teaching import teach
from ital_paper.features import Features
from ital_paper.tasks._images import pool_of

SEEDS = 20
HALVINGS = 12
WIDEST = math.log(0.01), math.log(10)  # range of log(scale); half precision allows no more


def scaled(features: Features, scale: float) -> Features:
    """Multiply all views by one number and the last layers' weights by its inverse.

    The outputs stay the same.

    Args:
        features: the content of a feature file.
        scale: the factor.

    Returns:
        The scaled content, with ``scale`` in its card.
    """
    layers = {}
    for name, layer in features.last_layers.items():
        weights = layer[:, :-1] / scale
        bias = layer[:, -1]
        layers[name] = np.column_stack([weights, bias]).astype(layer.dtype)
    return features._replace(
        card={**features.card, "scale": features.card.get("scale", 1.0) * scale},
        views=_scaled_views(features.views, scale),
        test_views=_scaled_views(features.test_views, scale),
        last_layers=layers,
    )


def _scaled_views(views: dict[str, np.ndarray], scale: float) -> dict[str, np.ndarray]:
    # Half precision would round the factor as well.
    return {
        name: (view.astype(np.float32) * scale).astype(view.dtype) for name, view in views.items()
    }


def scaled_for(
    features: Features,
    beta: float,
    *,
    seeds: int | Sequence[int] = SEEDS,
) -> Features:
    """Scale the views so that ``beta="auto"`` averages β over all teachers and seeds.

    The teachers are cooperative, the start is uniform. The paper chooses β so that the most
    probable example has a probability of about 80 % at the start. This depends on the length of
    the features, which the paper does not give.

    Args:
        features: the content of a feature file with a learner's and several teachers' views.
        beta: the β that the rule should give.
        seeds: seeds to average over.

    Returns:
        The scaled content.

    Raises:
        InputError: if no scale gives this β.
    """

    def beta_at(log_scale: float) -> float:
        return average_beta(scaled(features, math.exp(log_scale)), seeds)

    # By bisection: longer features need a smaller β.
    low, high = WIDEST
    if not beta_at(high) < beta < beta_at(low):
        raise InputError(f"no scale of the views from 0.01 to 10 gives an automatic β of {beta:g}")
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if beta_at(middle) > beta:
            low = middle
        else:
            high = middle
    # Three digits, so that the scale can be written down and typed in again.
    return scaled(features, float(f"{math.exp((low + high) / 2):.3g}"))


def average_beta(features: Features, seeds: int | Sequence[int] = SEEDS) -> float:
    """Return the mean of ``beta="auto"`` over all teachers of a feature file.

    Args:
        features: the content of a feature file.
        seeds: seeds to average over.

    Returns:
        The mean β.
    """
    name = features.card["name"]
    betas = []
    for teacher in features.card["teachers"]:
        pool = pool_of(features, teacher)
        task = from_pool(name, pool, losses.cross_entropy, beta="auto", eval_every=1)
        taught = teach(task, learner="ital", steps=1, seeds=seeds)
        betas.append(float(taught.curves["beta"].mean()))
    return float(np.mean(betas))


__all__ = ["average_beta", "scaled", "scaled_for"]
