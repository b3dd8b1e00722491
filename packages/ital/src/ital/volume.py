"""Teaching volume: how much closer a naive step on an example brings the learner to a target."""

from ital.tools.types import PerExample, Scalar


def exact(lr: Scalar, squared_norms: PerExample, progress: PerExample) -> PerExample:
    """Return the exact teaching volume, eq. (teaching-volume): TVᵢ = −η²‖gᵢ‖² + 2η⟨ν−ν*, gᵢ⟩.

    It is ‖ν−ν*‖² − ‖ν−ηgᵢ−ν*‖², the progress of one naive step.

    Args:
        lr: the step size η.
        squared_norms: ‖gᵢ‖² of every example (B,).
        progress: the inner products ⟨ν−ν*, gᵢ⟩ (B,).

    Returns:
        The volumes (B,).
    """
    return -(lr**2) * squared_norms + 2 * lr * progress


def imitated(
    lr: Scalar,
    squared_norms: PerExample,
    losses: PerExample,
    target_losses: PerExample,
) -> PerExample:
    """Return the imitated teaching volume, eqs. (imit-teacher), (imit-teaching-volume).

    TV̂ᵢ = −η²‖gᵢ‖² + 2η(l(αᵢ,yᵢ) − l(α*ᵢ,yᵢ)). It needs no parameters, only the outputs of learner
    and target. For a convex loss it is at most the exact volume.

    Args:
        lr: the step size η.
        squared_norms: ‖gᵢ‖² of every example, as the teacher imitates it (B,).
        losses: the learner's losses l(αᵢ, yᵢ) (B,).
        target_losses: the losses l(α*ᵢ, yᵢ) of the target (B,).

    Returns:
        The volumes (B,).
    """
    # A convex loss falls by at most ⟨ν−ν*, gᵢ⟩ on the way to the target: the fall of the loss
    # stands in for the progress that only the parameters would tell.
    return exact(lr, squared_norms, losses - target_losses)


__all__ = ["exact", "imitated"]
