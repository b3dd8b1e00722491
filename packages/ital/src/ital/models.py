"""The learner's model: how it stores examples, its outputs, and the gradients of its losses."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import gradients
from ital.errors import InputError
from ital.gradients import HIGHEST, Gradients
from ital.losses import Loss
from ital.tools import registry
from ital.tools.pickling import reduced
from ital.tools.short import short
from ital.tools.types import Array, Params, PRNGKeyArray


class Init(NamedTuple):
    """Where learning starts.

    Weights are ``uniform`` in [−scale, scale] or ``normal`` with deviation ``scale``; the bias is
    0. With ``OWN``, the model draws its own start.

    Attributes:
        kind: "uniform", "normal" or "own".
        scale: a number, traced inside compiled programs.
    """

    kind: str
    scale: Any

    @classmethod
    def parse(cls, text: "str | Init") -> "Init":
        """Parse ``uniform``, ``uniform:2`` or ``normal:0.1``.

        Args:
            text: the text; an ``Init`` is returned unchanged.

        Returns:
            The start.

        Raises:
            InputError: if the text has another form.
        """
        if isinstance(text, Init):
            return text
        if isinstance(text, str):
            kind, _, written = text.partition(":")
            scale = registry.number(written or 1.0)
            is_scale = 0 <= scale < math.inf
            if kind in ("uniform", "normal") and is_scale:
                return cls(kind, scale)
        raise InputError(
            f"start {text!r} must be uniform, uniform:SCALE or normal:SCALE (e.g. normal:0.1)"
        )

    def __str__(self) -> str:
        if self in (("uniform", 1.0), OWN):
            return self.kind
        # The shortest text that reads back as the same number.
        scale = repr(float(self.scale)).removesuffix(".0")
        return f"{self.kind}:{scale}"

    @property
    def spread(self) -> float:
        """Standard deviation of a weight; 1 for starts at zero, and for those of a model's own."""
        if self.kind == OWN.kind or self.scale == 0:
            return 1.0
        if self.kind == "uniform":
            return float(self.scale) / math.sqrt(3)
        return float(self.scale)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
        """Draw weights of the given shape.

        Args:
            key: a random key.
            shape: shape of the weights.

        Returns:
            The weights.

        Raises:
            InputError: if the kind is ``OWN``, which this model does not support.
        """
        if self.kind == OWN.kind:
            raise InputError("this model has no start of its own: choose uniform or normal:SCALE")
        if self.kind == "uniform":
            return jax.random.uniform(
                key,
                shape,
                minval=-self.scale,
                maxval=self.scale,
            )
        return self.scale * jax.random.normal(key, shape)


OWN = Init("own", 1.0)


class Model(NamedTuple):
    """A learner's model as pure functions.

    Attributes:
        name: name of the model.
        rows: ``rows(x)`` prepares the pool's raw features once; rows stay the leading axis of each
            leaf.
        start: ``start(key, init, rows, outputs)`` draws ν⁰ for K outputs.
        outputs: ``outputs(ν, rows)`` returns the answers α (B × K).
        gradients: ``gradients(ν, rows, y)`` returns losses and the three gradient operations at ν.
        init: the start, unless a task or a run sets another; ``OWN``: the model draws it.
    """

    name: str
    rows: Callable[[np.ndarray], Any]
    start: Callable[[PRNGKeyArray, Init, Any, int], Params]
    outputs: Callable[[Params, Any], Array]
    gradients: Callable[[Params, Any, Array], Gradients]
    init: Init = Init("uniform", 1.0)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return short("Model", self.name)


class LinearRows(NamedTuple):
    """Rows of a linear view, and their squared norms.

    The features have a trailing 1, because the bias is the last column of ν. Rows of a kernel model
    have none.

    Attributes:
        x: the rows (N, d).
        squared_norms: ‖x̃‖² (N,).
    """

    x: Any
    squared_norms: Any


def linear_rows(x: np.ndarray) -> LinearRows:
    """Append the constant 1 and compute the squared norms.

    Args:
        x: features (N, d − 1).

    Returns:
        The rows of a linear view.
    """
    count, features = x.shape
    rows = _aligned((count, features + 1), x.dtype)
    rows[:, :-1] = x
    rows[:, -1] = 1
    # A pool in half precision keeps its size, but its squares are summed in single precision.
    dtype = np.promote_types(x.dtype, np.float32)
    squared_norms = np.einsum("nd,nd->n", rows, rows, dtype=dtype)
    return LinearRows(rows, squared_norms)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an empty array aligned to 64 bytes: on a CPU, JAX uses it without a copy."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + 64, np.uint8)
    first = -room.ctypes.data % 64
    aligned = room[first : first + size]
    return aligned.view(dtype).reshape(shape)


@functools.cache  # one object per setting, so that equal tasks share one compiled program
def linear(loss: Loss, l2: float = 0.0) -> Model:
    """Return the model α = νx̃ with parameters K × (d+1), optionally with a penalty.

    The penalty is (λ/2)‖weights without bias‖² with λ = ``l2``.

    Args:
        loss: the loss of the outputs.
        l2: the factor λ of the penalty.

    Returns:
        The model; the same object for the same arguments.
    """

    def start(key: PRNGKeyArray, init: Init, rows: LinearRows, outputs: int) -> Array:
        features = rows.x.shape[1] - 1
        weights = init.draw(key, (outputs, features))
        # A last column of zeros: the bias.
        return jnp.pad(weights, ((0, 0), (0, 1)))

    def outputs(params: Array, rows: LinearRows) -> Array:
        return jnp.matmul(rows.x, params.T, precision=HIGHEST)

    def gradients_at(params: Array, rows: LinearRows, y: Array) -> Gradients:
        alpha = outputs(params, rows)
        losses = loss.value(alpha, y)
        residuals = loss.derivative(alpha, y)
        unpenalised = gradients.factored(losses, residuals, rows.x, rows.squared_norms)
        if not l2:
            return unpenalised
        without_bias = params.at[:, -1].set(0.0)
        return gradients.with_l2(unpenalised, l2, without_bias)

    return Model(
        name="linear",
        rows=linear_rows,
        start=start,
        outputs=outputs,
        gradients=gradients_at,
    )


# k(x, x′) of all pairs of rows: (N, d), (M, d) → (N, M).
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]
# Directions of smaller eigenvalues, relative to the largest, are rounding errors.
SMALLEST = 1e-10


def gaussian_kernel(width: float) -> Kernel:
    """Return the Gaussian kernel k(x, x′) = exp(−‖x − x′‖² / 2σ²).

    Args:
        width: σ.

    Returns:
        The kernel.

    Raises:
        InputError: if σ is not positive.
    """
    if not (math.isfinite(width) and width > 0):
        raise InputError(f"the width of a Gaussian kernel must be positive, not {width!r}")

    def k(x: np.ndarray, other: np.ndarray) -> np.ndarray:
        # ‖x − x′‖² of all pairs, multiplied out; rounding may make it slightly negative.
        norms = np.sum(x**2, axis=1)[:, None]
        other_norms = np.sum(other**2, axis=1)
        squares = norms + other_norms - 2 * x @ other.T
        distances = np.maximum(squares, 0)
        return np.exp(-distances / (2 * width**2))

    return k


def linear_kernel(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the linear kernel k(x, x′) = ⟨x, x′⟩ + 1: its functions are those of the linear model.

    Args:
        x: rows (N, d).
        other: rows (M, d).

    Returns:
        The kernel of all pairs (N, M).
    """
    return x @ other.T + 1


def kernel(loss: Loss, k: Kernel, centres: np.ndarray) -> Model:
    """Return a model f = Σᵢ aᵢ k(xᵢ, ·) in a Hilbert space, taught by functional gradients.

    A step is f ← f − η l′(f(x), y) k(x, ·). With K = k(centres, centres) = UΛUᵀ, the features

        φ(x) = Λ^(−1/2) Uᵀ k(centres, x)

    satisfy ⟨φ(x), φ(x′)⟩ = k(x, x′) on the centres. So f = ⟨ν, φ(·)⟩ is a linear model without
    bias, the norm of ν is that of f, and the plain loop takes the functional step, with
    ‖g‖² = l′² k(x, x) and a = UΛ^(−1/2)ν. Elsewhere φ is the projection of k(x, ·) on the functions
    above. Build the model once: each call compiles a new program.

    Args:
        loss: the loss of the outputs.
        k: the kernel: ``k(x, other)`` returns the values of all pairs of rows, in float64.
        centres: the rows xᵢ (N, d), usually the pool.

    Returns:
        The model. It starts at f = 0.
    """
    centres = np.asarray(centres, np.float64)
    gram = k(centres, centres)
    eigenvalues, directions = np.linalg.eigh(gram)
    kept = eigenvalues > SMALLEST * eigenvalues[-1]
    lengths = np.sqrt(eigenvalues[kept])
    whitening = directions[:, kept] / lengths

    def rows(x: np.ndarray) -> LinearRows:
        in_double = np.asarray(x, np.float64)
        projected = k(in_double, centres) @ whitening
        features = projected.astype(x.dtype)
        squared_norms = np.einsum("nd,nd->n", features, features)
        return LinearRows(features, squared_norms)

    def start(key: PRNGKeyArray, init: Init, rows: LinearRows, outputs: int) -> Array:
        _, features = rows.x.shape
        return init.draw(key, (outputs, features))

    return linear(loss)._replace(
        name="kernel",
        rows=rows,
        start=start,
        init=Init("uniform", 0.0),
    )


def differentiable(
    name: str,
    start: Callable[[PRNGKeyArray], Params],
    apply: Callable[[Params, Array], Array],
    loss: Loss,
) -> Model:
    """Return any differentiable model, with gradients by autodiff.

    The model draws its own start and accepts no other ``init``. Build it once: each call compiles a
    new program.

    Args:
        name: name of the model.
        start: ``start(key)`` draws the parameters, any pytree.
        apply: ``apply(params, x)`` returns the outputs (K,) of one example.
        loss: the loss of the outputs.

    Returns:
        The model.
    """

    def example_loss(params: Params, x: Array, y: Array) -> Array:
        # A loss takes a mini-batch: this one has a single example.
        alpha = apply(params, x)[None]
        losses = loss.value(alpha, y[None])
        return losses[0]

    def own_start(key: PRNGKeyArray, init: Init, rows: Any, outputs: int) -> Params:
        if init.kind != OWN.kind:
            raise InputError(f"model {name!r} draws its own start: leave out init ({init.kind})")
        return start(key)

    return Model(
        name,
        rows=lambda x: x,
        start=own_start,
        outputs=jax.vmap(apply, in_axes=(None, 0)),
        gradients=lambda params, x, y: gradients.autodiff(example_loss, params, x, y),
        init=OWN,
    )


__all__ = [
    "OWN",
    "Init",
    "Kernel",
    "LinearRows",
    "Model",
    "differentiable",
    "gaussian_kernel",
    "kernel",
    "linear",
    "linear_kernel",
    "linear_rows",
]
