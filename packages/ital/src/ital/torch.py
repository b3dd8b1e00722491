"""PyTorch networks as learners: ``model`` makes a model of one, ``load`` copies the result back.

JAX compiles the loop; in every step it calls PyTorch on the CPU for the outputs of the network and
the gradients of the mini-batch. Losses, teachers and learners are the same as for any other model.
"""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.gradients import HIGHEST, Gradients
from ital.losses import Loss
from ital.models import OWN, Init, Model
from ital.tools.checks import install
from ital.tools.types import Array, Params, PRNGKeyArray

try:
    import torch
    from torch import Tensor
    from torch.func import functional_call, grad, vmap
    from torch.nn import Module
except ImportError as error:
    raise InputError(
        f"teaching PyTorch networks needs {error.name}: {install('ital[torch]')}"
    ) from None

# Numbers of per-example gradients that PyTorch holds at a time.
AT_ONCE = 2**26


def model(
    network: Module,
    loss: Loss,
    *,
    name: str | None = None,
    fresh: bool = True,
) -> Model:
    """Make a learner's model from a PyTorch network.

    The network is copied and does not change. Parameters with ``requires_grad`` are taught; all
    others and the buffers are fixed, and dropout is off. It gets rows as the task has them, (B, d):
    put ``torch.nn.Unflatten`` in front if it expects images. Build the model once: each call
    compiles a new program.

    Args:
        network: takes rows (B, d) and returns outputs (B, K).
        loss: the loss of the outputs.
        name: name of the model; the class of the network if None.
        fresh: draw new parameters for each seed with every layer's ``reset_parameters``; False
            starts all seeds from the network's current parameters.

    Returns:
        The model. Its parameters are one vector, in the order of ``network.parameters()``.

    Raises:
        InputError: if there is nothing to teach.

    Example:
        >>> layers = torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
        >>> network = torch.nn.Sequential(*layers)
        >>> model = lambda loss: ital.torch.model(network, loss)
        >>> task = ital.tasks.from_arrays(x, y=y, model=model)
        >>> result = ital.teach(task, learner=["imt", "ital"], lr=0.05)
        >>> ital.torch.load(network, result.parameters["ital"][0])
    """
    name = name or type(network).__name__
    # A copy, so that the caller's network keeps its parameters, and stays in training mode if it
    # is.
    network = copy.deepcopy(network).cpu().eval()
    if not _taught(network):
        raise InputError(
            f"network {name!r} has no parameter with requires_grad: there is nothing to teach"
        )

    def start(key: PRNGKeyArray, init: Init, rows: Array, outputs: int) -> Array:
        if init.kind != OWN.kind:
            raise InputError(f"network {name!r} draws its own start: leave out init ({init.kind})")
        _try_out(name, network, rows.shape[1:])
        current = _vector(network)
        if not fresh:
            return jnp.asarray(current.numpy())
        seed = jax.random.bits(key, dtype=jnp.uint32)
        draw = functools.partial(_reset, network)
        return _call(draw, current.shape, seed, vmap_method="sequential")

    def outputs(params: Array, x: Array) -> Array:
        apply = functools.partial(_outputs_of_lanes, network)
        rows, *row_shape = x.shape
        shape = (rows, _number_of_outputs(network, row_shape))
        return _call(apply, shape, params, x)

    def gradients_at(params: Array, x: Array, y: Array) -> Gradients:
        alpha = outputs(params, x)
        residuals = loss.derivative(alpha, y)
        pull_back = functools.partial(_pulled_back, network)
        # (B, P): unlike a linear model's, these gradients are materialised.
        shape = (len(x), params.shape[-1])
        per_example = _call(pull_back, shape, params, x, residuals)
        return _from_rows(loss.value(alpha, y), per_example)

    return Model(name, lambda x: x, start, outputs, gradients_at, init=OWN)


def _from_rows(losses: Array, per_example: Array) -> Gradients:
    """Return the three operations on gradients that are rows of a matrix (B, P)."""

    def inner(v: Any) -> Array:
        return jnp.matmul(per_example, v, precision=HIGHEST)

    def weighted_sum(w: Any) -> Array:
        weights = w.astype(per_example.dtype)
        return jnp.matmul(weights, per_example, precision=HIGHEST)

    return Gradients(
        losses=losses,
        squared_norms=jnp.sum(per_example**2, axis=-1),
        inner=inner,
        weighted_sum=weighted_sum,
    )


def load(network: Module, params: Params) -> None:
    """Copy a learner's parameters into the network.

    Args:
        network: a network like the one that was taught; its parameters with ``requires_grad`` are
            overwritten.
        params: the learner's parameters, e.g. ``result.parameters["ital"][0]`` of the first seed.

    Raises:
        InputError: if their number does not match.
    """
    vector = torch.tensor(np.asarray(params))
    taught = _taught(network)
    expected = sum(parameter.numel() for parameter in taught.values())
    if vector.shape != (expected,):
        raise InputError(
            f"params has shape {tuple(vector.shape)}, but the network has {expected} parameters to "
            "load: pass those of one learner and one seed"
        )
    values = _unflattened(taught, vector)
    with torch.no_grad():
        for name, parameter in taught.items():
            parameter.copy_(values[name])


def _taught(network: Module) -> dict[str, Tensor]:
    """Return the parameters that are taught, by name."""
    parameters = dict(network.named_parameters())
    return {name: one for name, one in parameters.items() if one.requires_grad}


def _vector(network: Module) -> Tensor:
    """Return the parameters that are taught as one vector (P,)."""
    parameters = _taught(network).values()
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def _unflattened(taught: dict[str, Tensor], vector: Tensor) -> dict[str, Tensor]:
    """Return the parts of a vector (P,) in the shapes of the parameters."""
    sizes = [parameter.numel() for parameter in taught.values()]
    parts = torch.split(vector, sizes)
    parameters = {}
    for (name, parameter), part in zip(taught.items(), parts, strict=True):
        parameters[name] = part.view(parameter.shape)
    return parameters


def _applied(network: Module, vector: Tensor, x: Tensor) -> Tensor:
    """Return the outputs (B, K) of parameters (P,) on rows (B, d)."""
    parameters = _unflattened(_taught(network), vector)
    outputs = functional_call(network, parameters, (x,))
    return cast(Tensor, outputs)


def _outputs_of_lanes(network: Module, vectors: Tensor, x: Tensor) -> Tensor:
    """Return outputs (lanes, B, K) of parameters (lanes, P) on rows (lanes, B, d)."""
    of_lanes = vmap(functools.partial(_applied, network))
    with torch.no_grad():
        return of_lanes(vectors, x)


def _pulled_back(
    network: Module,
    vectors: Tensor,
    x: Tensor,
    residuals: Tensor,
) -> Tensor:
    """Return the gradients gᵢ = Jᵢᵀrᵢ of every lane and example (lanes, B, P).

    Jᵢ is the Jacobian of the outputs.
    """

    def along(vector: Tensor, row: Tensor, residual: Tensor) -> Tensor:
        outputs = _applied(network, vector, row[None])[0]
        return (outputs * residual).sum()

    _, rows, *_ = x.shape
    _, size = vectors.shape
    # The number of lanes whose gradients fit into memory together.
    lanes = max(1, AT_ONCE // (rows * size))
    of_lane = vmap(grad(along), in_dims=(None, 0, 0))
    of_lanes = vmap(of_lane, chunk_size=lanes)
    return of_lanes(vectors, x, residuals)


def _reset(network: Module, seed: Tensor) -> Tensor:
    """Draw parameters as PyTorch does, the same for the same seed."""
    drawn = copy.deepcopy(network)
    # The caller's random state must not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        for layer in drawn.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
    return _vector(drawn)


def _number_of_outputs(network: Module, row_shape: Sequence[int]) -> int:
    """Return the number of outputs K for rows of this shape."""
    example = torch.zeros(1, *row_shape, dtype=_vector(network).dtype)
    with torch.no_grad():
        *_, outputs = network(example).shape
    return int(outputs)


def _try_out(name: str, network: Module, row: tuple[int, ...]) -> None:
    """Raise InputError if the network has no outputs or per-example gradients on such rows."""
    vector = _vector(network)[None]
    x = torch.zeros(1, 2, *row, dtype=vector.dtype)
    try:
        alpha = _outputs_of_lanes(network, vector, x)
        _pulled_back(network, vector, x, alpha)
    except Exception as error:
        # The network is the user's: it may fail in any way.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"network {name!r} cannot be taught with rows of shape {row}: {reason[0]}"
        ) from error


def _call(
    function: Callable[..., Tensor],
    shape: tuple[int, ...],
    *arrays: Array,
    vmap_method: str = "broadcast_all",
) -> Array:
    """Call PyTorch from a compiled program.

    Args:
        function: takes tensors with a leading axis of lanes; with ``sequential``, those of one
            lane.
        shape: shape of one lane's result.
        *arrays: arrays of one lane, which ``vmap`` gives leading axes.
        vmap_method: whether all lanes are one call ("broadcast_all"), or each has its own.

    Returns:
        The result of one lane.
    """
    dtype = jnp.result_type(float)
    ranks = [array.ndim for array in arrays]

    def called(*batched: Any) -> np.ndarray:
        # Nested ``vmap``s give several leading axes, e.g. (seed, lane): PyTorch sees one.
        first = np.asarray(batched[0])
        leading = first.shape[: first.ndim - ranks[0]]
        tensors = [_lanes_first(*pair) for pair in zip(batched, ranks, strict=True)]
        if vmap_method != "broadcast_all":
            tensors = [tensor[0] for tensor in tensors]
        result = function(*tensors)
        values = result.detach().numpy().astype(dtype)
        return values.reshape(*leading, *shape)

    like = jax.ShapeDtypeStruct(shape, dtype)
    return jax.pure_callback(called, like, *arrays, vmap_method=vmap_method)


def _lanes_first(array: Any, rank: int) -> Tensor:
    """Return the array of each lane, of this rank, with all leading axes as one."""
    # A copy: PyTorch does not accept read-only arrays.
    values = np.array(array)
    own_shape = values.shape[values.ndim - rank :]
    return torch.from_numpy(values.reshape(-1, *own_shape))


__all__ = ["load", "model"]
