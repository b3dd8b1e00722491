"""Sequential cooperative Bayesian inference, the teacher's part."""

from typing import Any

import jax
import jax.numpy as jnp

from ital import beliefs
from ital.errors import InputError
from ital.teachers._base import Noise, Signals, Teacher, TeacherView, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.types import Array, Int, PRNGKeyArray


def choose_by_belief(noise: Noise, view: TeacherView, settings: Any) -> Int[Array, ""]:
    """Draw d ~ T(·,h*)/θ(h*), with the belief θ that the learner reports."""
    log_drawn = beliefs.scbi(view.examples, view.feedback)
    return drawn(noise, log_drawn[:, view.target])


def mean_prior(key: PRNGKeyArray, side: Any, settings: Any) -> Array:
    """Return the teacher's own prior about the learner: the mean of what it may believe."""
    possible = jnp.atleast_2d(side.examples.log_prior)
    log_sum = jax.nn.logsumexp(possible, axis=0)
    return jax.nn.log_softmax(log_sum)


def choose_by_prior(
    noise: Noise,
    view: TeacherView,
    settings: Any,
    memory: Array,
) -> tuple[Int[Array, ""], Array, Signals]:
    """Draw the same with the belief that an SCBI learner with this prior would have by now."""
    log_drawn = beliefs.scbi(view.examples, memory)
    chosen = drawn(noise, log_drawn[:, view.target])
    after = beliefs.posterior(memory, log_drawn[chosen])
    return chosen, after, {}


def scbi(text: str = "") -> Teacher:
    """Teaches a hypothesis by SCBI (Wang et al. 2020): d ~ T(·,h*)/Σ.

    T is M, scaled to row sums 1/n and column sums θ.

    Args:
        text: "prior" for a teacher that gets no feedback: it computes the learner's belief from its
            own prior and the data shown, as Wang et al. do; empty for one that reads the belief.

    Returns:
        The teacher.

    Raises:
        InputError: if the text is another one.
    """
    if text not in ("", "prior"):
        raise InputError(f"an SCBI teacher is written scbi or scbi:prior, not scbi:{text}")
    if text:
        return Teacher(
            "scbi:prior",
            choose_by_prior,
            prepare=draw_noise,
            init=mean_prior,
            feedback=False,
            needs=("likelihoods",),
        )
    return Teacher("scbi", choose_by_belief, prepare=draw_noise, needs=("likelihoods",))
