"""Which k of these N examples should I train on now, given a model that already knows?

The cooperative teacher's choice for any training loop: arrays of NumPy, JAX or PyTorch in, arrays
of the same kind out.

    scores = volumes(losses, reference_losses)
    chosen = choose(scores, k=32)
    loss = losses[chosen].mean()

``ital.select.torch`` wraps a PyTorch DataLoader, ``ital.select.jax`` offers the same for a train
step in JAX.
"""

from typing import Any

import array_api_compat as arrays

from ital.errors import InputError

Array = Any  # of NumPy, JAX or PyTorch


def volumes(
    losses: Array,
    reference_losses: Array,
    squared_norms: Array | None = None,
    lr: float | None = None,
) -> Array:
    """Score examples by the imitated teaching volume, in units of loss: (lᵢ − l*ᵢ) − (η/2)‖gᵢ‖².

    An example scores high if the learner loses on it what the reference model does not: it is
    neither known already nor noise. Times 2η the score is eq. (imit-teacher),
    ``ital.volume.imitated``; without the norms it is RHO-LOSS.

    Args:
        losses: the learner's losses lᵢ (N,), or several rows of them (B, N).
        reference_losses: losses l*ᵢ of the model that already knows, of the same shape.
        squared_norms: ‖gᵢ‖² of the learner's gradients, for instance from :func:`squared_norms_of`;
            None leaves the term out.
        lr: the step size η; needed with the norms.

    Returns:
        The scores, of the same shape.

    Raises:
        InputError: if shapes differ, or norms come without a step size.
    """
    _same_shape(losses=losses, reference_losses=reference_losses, squared_norms=squared_norms)
    progress = losses - reference_losses
    if squared_norms is None:
        return progress
    half = _step_size(lr) / 2
    return progress - half * squared_norms


def squared_norms_of(
    logits: Array,
    labels: Array,
    features: Array | None = None,
    *,
    bias: bool = True,
) -> Array:
    """Squared norms ‖gᵢ‖² of the cross-entropy's gradients in the last layer, from one forward
    pass.

    Args:
        logits: outputs of the last layer (N, K), or (B, N, K).
        labels: right classes, whole numbers (N,), or (B, N).
        features: inputs of the last layer (N, d), or (B, N, d); None gives the norms with respect
            to the logits.
        bias: whether the last layer has a bias.

    Returns:
        The squared norms, of the shape of the labels.
    """
    xp = arrays.array_namespace(logits, labels)
    # The largest logit is taken off, so that no exponential overflows.
    largest = xp.max(logits, axis=-1, keepdims=True)
    weights = xp.exp(logits - largest)
    probabilities = weights / xp.sum(weights, axis=-1, keepdims=True)
    classes = xp.arange(logits.shape[-1], device=arrays.device(logits))
    is_right = labels[..., None] == classes
    one_hot = xp.astype(is_right, logits.dtype)  # (…, K)
    of_logits = xp.sum((probabilities - one_hot) ** 2, axis=-1)
    if features is None:
        return of_logits
    # The gradient is the outer product of both; a bias is a feature that is always 1.
    of_features = xp.sum(features**2, axis=-1) + float(bias)
    return of_logits * of_features


def choose(
    scores: Array,
    k: int,
    temperature: float = 0.0,
    rng: Any = None,
    *,
    on_nan: str = "refuse",
) -> Array:
    """Choose k of N examples: the best ones, or k draws without replacement with probability ∝
    exp(score/temperature).

    Args:
        scores: scores of the examples (N,), or several rows of them (B, N): then k are chosen in
            each row.
        k: how many to choose.
        temperature: 0 takes the k best; more makes the choice more random (Gumbel-top-k).
        rng: source of randomness, needed with a temperature: a NumPy generator for any library, a
            ``torch.Generator`` for PyTorch, or a key for JAX.
        on_nan: what to do about scores that are not finite: "refuse" them, or choose them "last".
            Inside ``jax.jit`` the scores are not known yet, and such ones always come last.

    Returns:
        Indices of the chosen examples, the first choice first (k,) or (B, k). Of equal scores, the
        lower index comes first.

    Raises:
        InputError: if k does not fit, randomness is needed and missing, or scores are not finite.
    """
    _check_choice(scores, k, temperature, on_nan)
    xp = arrays.array_namespace(scores)
    is_finite = xp.isfinite(scores)
    if on_nan == "refuse":
        _refuse_infinite(is_finite, xp)
    if temperature > 0:
        scores = scores / temperature + _gumbel_noise(scores, rng, xp)
    last = xp.asarray(-xp.inf, dtype=scores.dtype, device=arrays.device(scores))
    scores = xp.where(is_finite, scores, last)
    best_first = xp.argsort(scores, axis=-1, descending=True, stable=True)
    return best_first[..., :k]


def _check_choice(scores: Array, k: int, temperature: float, on_nan: str) -> None:
    """Raise InputError unless k of the scores can be chosen."""
    if len(scores.shape) not in (1, 2):
        raise InputError(
            f"scores must be one row (N,) or several (B, N), not of shape {tuple(scores.shape)}"
        )
    count = scores.shape[-1]
    if not 1 <= k <= count:
        raise InputError(f"k must lie between 1 and the {count} scores, not {k}")
    if temperature < 0:
        raise InputError(f"temperature must be at least 0, not {temperature}")
    if on_nan not in ("refuse", "last"):
        raise InputError(f"on_nan must be 'refuse' or 'last', not {on_nan!r}")


def choice_loss(
    losses_now: Array,
    losses_then: Array,
    chosen: Array,
    beta_lr: float,
    squared_norms: Array | None = None,
    lr: float | None = None,
) -> Array:
    """Return −log P of the teacher's ordered choice, for a learner that asks "why these?".

    The learner imagines a teacher whose target is its own present model. Example i then has the
    score sᵢ = 2βη (thenᵢ − nowᵢ) − βη·η‖gᵢ‖², and the choice is one softmax after the other, each
    over the examples that are left (Plackett–Luce). The gradient goes through ``losses_now`` alone.

    ``loss = losses[chosen].mean() + w * choice_loss(losses, losses_before, chosen, beta_lr)`` is
    teacher awareness in one line. One SGD step of size η on it from ν̂ is Algorithm 1's awareness
    step.

    Args:
        losses_now: losses at the present parameters ν̂ (N,), or several rows of them (B, N);
            differentiable.
        losses_then: losses that the teacher saw, at ν, of the same shape.
        chosen: indices of the chosen examples, the first choice first (k,), or (B, k); one index is
            a choice of one.
        beta_lr: βη, how rational the learner thinks the teacher is, times the step size.
        squared_norms: ‖gᵢ‖² at ν, of the same shape as the losses; None leaves the term out.
        lr: the step size η; needed with the norms.

    Returns:
        The sum over the k places: a scalar, or one number per row (B,).
    """
    _same_shape(losses_now=losses_now, losses_then=losses_then, squared_norms=squared_norms)
    xp = arrays.array_namespace(losses_now)
    device = arrays.device(losses_now)
    then = xp.asarray(losses_then, device=device)
    scores = 2 * beta_lr * (then - losses_now)
    if squared_norms is not None:
        norms = xp.asarray(squared_norms, device=device)
        scores = scores - beta_lr * _step_size(lr) * norms
    indices = xp.asarray(chosen, device=device)
    if indices.ndim == 0:
        indices = xp.reshape(indices, (1,))
    if tuple(indices.shape[:-1]) != tuple(scores.shape[:-1]):
        raise InputError(
            "a choice is needed for each row of losses: "
            f"chosen {tuple(indices.shape)}, losses {tuple(scores.shape)}"
        )
    return _plackett_luce(scores, indices, device)


def _plackett_luce(scores: Array, indices: Array, device: Any) -> Array:
    """Return −log P of an ordered choice (…, k): one softmax after the other among those left."""
    xp = arrays.array_namespace(scores)
    places = xp.arange(scores.shape[-1], device=device)
    # (…, k, N): whether each example is taken at each place of the choice. It is left at a place if
    # no earlier place took it.
    is_taken = indices[..., None] == places
    times = xp.astype(is_taken, xp.int32)
    times_before = xp.cumulative_sum(times, axis=-2) - times
    is_left = times_before == 0
    at_each_place = scores[..., None, :]
    among = xp.where(is_left, at_each_place, -xp.inf)
    # log Σ exp over those that are left; the largest is taken off, so that nothing overflows.
    most = xp.max(among, axis=-1, keepdims=True)
    total = xp.sum(xp.exp(among - most), axis=-1)
    of_all = most[..., 0] + xp.log(total)
    score_taken = xp.where(is_taken, at_each_place, xp.zeros_like(among))
    of_chosen = xp.sum(score_taken, axis=-1)
    return xp.sum(of_all - of_chosen, axis=-1)


def _gumbel_noise(scores: Array, rng: Any, xp: Any) -> Array:
    """Draw standard Gumbel noise like the scores."""
    if rng is None:
        raise InputError("a choice with a temperature needs rng, a source of randomness")
    if hasattr(rng, "gumbel"):
        noise = rng.gumbel(size=tuple(scores.shape))
        return xp.asarray(noise, dtype=scores.dtype, device=arrays.device(scores))
    if arrays.is_torch_array(scores):
        # −log of an exponential variable is a Gumbel variable.
        exponential = xp.empty_like(scores).exponential_(generator=rng)
        return -xp.log(exponential)
    if arrays.is_jax_array(scores):
        from jax import random

        return random.gumbel(rng, scores.shape, scores.dtype)
    raise InputError(f"rng must be a NumPy generator, not {type(rng).__name__}")


def _refuse_infinite(is_finite: Array, xp: Any) -> None:
    """Raise InputError unless all scores are finite; inside ``jax.jit`` that is not known yet."""
    if arrays.is_jax_array(is_finite):
        from jax.core import Tracer

        if isinstance(is_finite, Tracer):
            return
    if bool(xp.all(is_finite)):
        return
    is_fault = ~is_finite
    faults = int(xp.sum(xp.astype(is_fault, xp.int32)))
    first = tuple(int(indices[0]) for indices in xp.nonzero(is_fault))
    at = str(first)
    if len(first) == 1:
        at = str(first[0])
    raise InputError(
        f"{faults} of {arrays.size(is_finite)} scores are not finite, "
        f"the first at {at}: has the model diverged? on_nan='last' chooses such examples last"
    )


def _same_shape(**arrays_by_name: Array | None) -> None:
    """Raise InputError unless all arrays that are given have one shape, (N,) or (B, N)."""
    given = {}
    for name, array in arrays_by_name.items():
        if array is not None:
            given[name] = tuple(array.shape)
    shapes = set(given.values())
    have_rows = all(len(shape) in (1, 2) for shape in shapes)
    if len(shapes) > 1 or not have_rows:
        found = ", ".join(f"{name} {shape}" for name, shape in given.items())
        raise InputError(
            f"one number per example is needed, all of one shape (N,) or (B, N): {found}"
        )


def _step_size(lr: float | None) -> float:
    """Return the step size; raise InputError if it is missing."""
    if lr is None:
        raise InputError("squared_norms need lr, the step size")
    return lr


__all__ = ["choice_loss", "choose", "squared_norms_of", "volumes"]
