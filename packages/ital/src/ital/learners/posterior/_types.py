"""The numbers and the memory of a learner that keeps a belief over its target.

Letters: ``D`` parameters, ``W`` steps in the window, ``B`` examples in a mini-batch, ``k`` choices
in a step, ``J`` values of b.
"""

from typing import Any, NamedTuple

from ital.likelihoods import Quadratic
from ital.tools.types import Array, Bool, Float, Int, Scalar


class BeliefNumbers(NamedTuple):
    """The numbers of a belief, traced.

    Attributes:
        scale: standard deviation s of the prior of every parameter.
        sigma: standard deviation σ of the labels' noise, for the square loss.
        wrong: the share p of wrong labels.
        lapse: the share ε of choices that the teacher makes by chance.
        chance: the prior probability that all choices are made by chance (b = 0).
        grid: the values of |b|, in units of the inverse spread of the first volumes; of a known
            teacher its b, per 1 of teaching volume.
        sharpest: the largest b of a choice, in units of the inverse spread of the volumes that the
            belief expects at that time.
        all_labels: 1 if all labels of the mini-batch are evidence, 0 if only the chosen one's is.
        from_start: 1 if the prior's mean is the start of the run, 0 if it is zero.
    """

    scale: Any
    sigma: Any
    wrong: Any
    lapse: Any
    chance: Any
    grid: tuple[Any, ...]
    sharpest: Any
    all_labels: Any
    from_start: Any


class Structure(NamedTuple):
    """What decides which program runs.

    Attributes:
        aware: whether choices are evidence.
        window: number W of steps whose examples are kept.
        exact: whether the teacher's volumes are exact (linear in ν*) or imitated.
        estimates_scale: whether s is estimated.
        estimates_sigma: whether σ is estimated.
        mixture: whether some labels may be wrong.
        iterations: Gauss–Newton steps after each lesson.
        sizes: number of values of |b|.
        known: whether it is known how the teacher chooses: one b with its sign.
    """

    aware: bool
    window: int
    exact: bool
    estimates_scale: bool
    estimates_sigma: bool
    mixture: bool
    iterations: int
    sizes: int
    known: bool = False


class StepWindow(NamedTuple):
    """The latest W steps, in a ring: step t is in slot t mod W.

    Attributes:
        kept: what the likelihood keeps of the mini-batches (W, B, …).
        label_weights: how much each label counts (W, B); 0 in empty slots.
        known: the part of each volume that does not depend on the target (W, B): −η²‖g‖² + 2ηl(ν_t)
            or, for exact volumes, −η²‖g‖² + 2η⟨ν_t, g⟩.
        directions: the gradients at ν_t (W, B, D), for exact volumes only.
        chosen: the choices (W, k).
        present: 1 for slots that hold a step, 0 for others (W,).
    """

    kept: Any
    label_weights: Array
    known: Array
    directions: Any
    chosen: Int[Array, "W k"]
    present: Float[Array, " W"]


class Hypothesis(NamedTuple):
    """The belief under one b: a normal distribution around its maximum.

    Attributes:
        maximum: the parameters ν̂_b (D,).
        damping: the damping of the next Gauss–Newton step.
        folded: what left the window, as a quadratic around ``maximum``.
        folded_choices: −log q of the folded choices, when they were folded.
        factor: the Cholesky factor of the precision at the maximum (D, D).
        sharpness: the b of each choice in the window (W,): b itself, or less where the belief was
            too wide for it.
    """

    maximum: Float[Array, " D"]
    damping: Scalar
    folded: Quadratic
    folded_choices: Scalar
    factor: Float[Array, "D D"]
    sharpness: Float[Array, " W"]


class Belief(NamedTuple):
    """The memory of the learner.

    Attributes:
        mean: the mean m of the prior (D,).
        hypotheses: one :class:`Hypothesis` per b, with a leading axis J; the first is b = 0.
        counted: sufficient statistics of the labels; () without.
        window: the latest steps; () if nothing is read from them.
        seen: which rows of the pool were counted (N,); () without a pool.
        unit: the inverse spread of the first volumes; 1 if the teacher's b is known.
        scale: the present s.
        sigma: the present σ.
        least_sigma: the smallest σ that rounding lets the learner tell from 0.
        bits: what the choices have told so far, in bits.
    """

    mean: Float[Array, " D"]
    hypotheses: Hypothesis
    counted: Any
    window: Any
    seen: Bool[Array, " N"] | tuple[()]
    unit: Scalar
    scale: Scalar
    sigma: Scalar
    least_sigma: Scalar
    bits: Scalar
