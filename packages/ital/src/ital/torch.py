"""PyTorch networks as learners: ``model`` makes one a learner's model, ``load`` copies the result back.

JAX compiles the loop; in every step it calls PyTorch on the CPU for the outputs of the network and the gradients of the
mini-batch. Losses, teachers and learners are the same as for any other model.
"""

import copy
import functools
from collections.abc import Callable
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
    from torch.func import functional_call, grad, vmap
except ImportError as error:
    raise InputError(
        f"teaching PyTorch networks needs {error.name}: {install('ital[torch]')}"
    ) from None

AT_ONCE = 2**26  # numbers of per-example gradients that PyTorch holds at a time


def model(
    network: torch.nn.Module, loss: Loss, *, name: str | None = None, fresh: bool = True
) -> Model:
    """Make a learner's model from a PyTorch network.

    The network is copied and does not change. Parameters with ``requires_grad`` are taught; all others and the buffers
    are fixed, and dropout is off. It gets rows as the task has them, (B, d): put ``torch.nn.Unflatten`` in front if it
    expects images. Build the model once: each call compiles a new program.

    Args:
        network: takes rows (B, d) and returns outputs (B, K).
        loss: the loss of the outputs.
        name: name of the model; the class of the network if None.
        fresh: draw new parameters for each seed with every layer's ``reset_parameters``; False starts all seeds from
            the network's current parameters.

    Returns:
        The model. Its parameters are one vector, in the order of ``network.parameters()``.

    Raises:
        InputError: if there is nothing to teach.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        >>> task = ital.tasks.from_arrays(x, y=y, model=lambda loss: ital.torch.model(network, loss))
        >>> result = ital.teach(task, learner=["imt", "ital"], lr=0.05)
        >>> ital.torch.load(network, result.parameters["ital"][0])
    """
    name = name or type(network).__name__
    network = copy.deepcopy(network).cpu().eval()
    if not _taught(network):
        raise InputError(
            f"network {name!r} has no parameter with requires_grad: there is nothing to teach"
        )

    def start(key: PRNGKeyArray, init: Init, rows: Array, outputs: int) -> Array:
        if init.kind != OWN.kind:
            raise InputError(f"network {name!r} draws its own start: leave out init ({init.kind})")
        _try_out(name, network, rows.shape[1:])
        if not fresh:
            return jnp.asarray(_vector(network).numpy())
        seed = jax.random.bits(key, dtype=jnp.uint32)
        return _call(
            functools.partial(_reset, network),
            _vector(network).shape,
            seed,
            vmap_method="sequential",
        )

    def outputs(params: Array, x: Array) -> Array:
        return _call(
            functools.partial(_answers, network),
            (len(x), _outputs(network, x.shape[1:])),
            params,
            x,
        )

    def gradients_at(params: Array, x: Array, y: Array) -> Gradients:
        alpha = outputs(params, x)
        residuals = loss.derivative(alpha, y)
        shape = (len(x), params.shape[-1])
        per_example = _call(functools.partial(_pulled_back, network), shape, params, x, residuals)
        return Gradients(
            losses=loss.value(alpha, y),
            squared_norms=jnp.sum(per_example**2, axis=-1),
            inner=lambda v: jnp.matmul(per_example, v, precision=HIGHEST),
            weighted_sum=lambda w: jnp.matmul(
                w.astype(per_example.dtype), per_example, precision=HIGHEST
            ),
        )

    return Model(name, lambda x: x, start, outputs, gradients_at, init=OWN)


def load(network: torch.nn.Module, params: Params) -> None:
    """Copy a learner's parameters into the network.

    Args:
        network: a network like the one that was taught; its parameters with ``requires_grad`` are overwritten.
        params: the learner's parameters, e.g. ``result.parameters["ital"][0]`` of the first seed.

    Raises:
        InputError: if their number does not match.
    """
    vector = torch.tensor(np.asarray(params))
    taught = _taught(network)
    expected = sum(parameter.numel() for parameter in taught.values())
    if vector.shape != (expected,):
        raise InputError(
            f"params has shape {tuple(vector.shape)}, but the network has {expected} parameters to load: pass those "
            "of one learner and one seed"
        )
    with torch.no_grad():
        for parameter, values in zip(
            taught.values(), _unflattened(taught, vector).values(), strict=True
        ):
            parameter.copy_(values)


def _taught(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad
    }


def _vector(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in _taught(network).values()])


def _unflattened(taught: dict[str, torch.Tensor], vector: torch.Tensor) -> dict[str, torch.Tensor]:
    parts = torch.split(vector, [parameter.numel() for parameter in taught.values()])
    return {name: part.view(taught[name].shape) for name, part in zip(taught, parts, strict=True)}


def _applied(network: torch.nn.Module, vector: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return cast(
        torch.Tensor, functional_call(network, _unflattened(_taught(network), vector), (x,))
    )


def _answers(network: torch.nn.Module, vectors: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Outputs (lanes, B, K) of parameters (lanes, P) on rows (lanes, B, d)."""
    with torch.no_grad():
        return vmap(functools.partial(_applied, network))(vectors, x)


def _pulled_back(
    network: torch.nn.Module, vectors: torch.Tensor, x: torch.Tensor, residuals: torch.Tensor
) -> torch.Tensor:
    """Gradients gᵢ = Jᵢᵀrᵢ of every lane and example (lanes, B, P), with Jᵢ the Jacobian of the outputs."""

    def along(vector: torch.Tensor, row: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return (_applied(network, vector, row[None])[0] * residual).sum()

    size = max(1, AT_ONCE // (x.shape[1] * vectors.shape[1]))
    return vmap(vmap(grad(along), in_dims=(None, 0, 0)), chunk_size=size)(vectors, x, residuals)


def _reset(network: torch.nn.Module, seed: torch.Tensor) -> torch.Tensor:
    """Parameters as PyTorch draws them, the same for the same seed; the caller's random state does not change."""
    drawn = copy.deepcopy(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        for layer in drawn.modules():
            if callable(reset := getattr(layer, "reset_parameters", None)):
                reset()
    return _vector(drawn)


def _outputs(network: torch.nn.Module, row: tuple[int, ...]) -> int:
    """The number of outputs K for rows of this shape."""
    with torch.no_grad():
        return int(network(torch.zeros(1, *row, dtype=_vector(network).dtype)).shape[-1])


def _try_out(name: str, network: torch.nn.Module, row: tuple[int, ...]) -> None:
    """Raise InputError if the network cannot be applied to such rows, or has no per-example gradients."""
    vector = _vector(network)[None]
    x = torch.zeros(1, 2, *row, dtype=vector.dtype)
    try:
        alpha = _answers(network, vector, x)
        _pulled_back(network, vector, x, alpha)
    except Exception as error:  # the network is the user's
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"network {name!r} cannot be taught with rows of shape {row}: {reason[0]}"
        ) from error


def _call(
    function: Callable[..., torch.Tensor],
    shape: tuple[int, ...],
    *arrays: Array,
    vmap_method: str = "broadcast_all",
) -> Array:
    """Call PyTorch from a compiled program, once for all lanes; ``shape`` is that of one lane's result."""
    dtype = jnp.result_type(float)
    ranks = [array.ndim for array in arrays]

    def called(*batched: Any) -> np.ndarray:
        lead = np.shape(batched[0])[: np.ndim(batched[0]) - ranks[0]]
        tensors = []
        for array, rank in zip(batched, ranks, strict=True):
            values = np.array(array)  # a copy: PyTorch does not accept read-only arrays
            tensors.append(
                torch.from_numpy(values.reshape(-1, *values.shape[values.ndim - rank :]))
            )
        result = (
            function(*tensors)
            if vmap_method == "broadcast_all"
            else function(*(t[0] for t in tensors))
        )
        return result.detach().numpy().astype(dtype).reshape(*lead, *shape)

    return jax.pure_callback(
        called, jax.ShapeDtypeStruct(shape, dtype), *arrays, vmap_method=vmap_method
    )


__all__ = ["load", "model"]
