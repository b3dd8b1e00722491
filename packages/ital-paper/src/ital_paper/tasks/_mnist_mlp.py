"""MNIST pictures for a learner with a neural network.

It is taught through the features of another network.
"""

import numpy as np

from ital import losses
from ital.errors import InputError
from ital.models import OWN
from ital.tasks import Pool, Task, from_pool, mlp
from ital_paper.tasks._images import load_features


def mnist_mlp(
    *,
    teacher: int = 20,
    width: int = 32,
    label_noise: float = 0.0,
) -> Task:
    """MNIST images for an MLP learner (all layers learn), taught through another network's
    features; try --lr 0.05.

    Args:
        teacher: features of the teacher's network, 20 or 30.
        width: number of hidden units of the learner.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.

    Raises:
        InputError: if the two feature files hold different rows, or one is missing.
    """
    name = "mnist-mlp"
    pixels = load_features(name, "mnist-pixels")
    networks = load_features(name, "mnist", str(teacher))
    # Row i of one file must be row i of the other. Rows of one class would not be noticed here.
    if not np.array_equal(pixels.labels, networks.labels):
        raise InputError(
            f"task {name!r}: mnist-pixels and mnist hold different rows: "
            "build both from one data set with one seed"
        )
    view = pixels.card["learner"]
    pool = Pool(
        learner_x=pixels.views[view] / np.float32(255),
        teacher_x=networks.views[str(teacher)],
        labels=pixels.labels.astype(np.int32),
        teacher_target=networks.last_layers[str(teacher)],
        # Many weights give the same outputs, so no weights are the target.
        learner_target=None,
        test_x=pixels.test_views[view] / np.float32(255),
        test_labels=pixels.test_labels.astype(np.int32),
    )
    return from_pool(
        name,
        pool,
        losses.cross_entropy,
        model=mlp(losses.cross_entropy, width),
        # At η = 0.05 both steps have equal weight: 2βη = 1.
        beta=10.0,
        title=f"MNIST pictures, MLP of {width}, teacher {teacher}-D",
        init=OWN,
        eval_every=50,
        label_noise=label_noise,
        data_version=f"{pixels.version} {networks.version}",
        settings={"teacher_network": teacher, "width": width},
    )
