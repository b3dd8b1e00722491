"""Real images, seen by teacher and learner through different networks.

Supplement, "Linear Models on Real Data".
"""

from ital import losses
from ital.errors import InputError
from ital.tasks import Pool, Task, from_pool
from ital_paper import features


def from_features(  # noqa: PLR0913
    name: str,
    file: str,
    teacher: str,
    *,
    beta: float,
    title: str,
    beta_decay: float = 0.0,
    eval_every: int = 10,
    label_noise: float = 0.0,
    top5: bool = False,
) -> Task:
    """Make a task from a feature file.

    The learner sees the view of the file's first network, the teacher that of ``teacher``. Targets
    are the networks' own last layers.

    Args:
        name: name of the task.
        file: name of the feature file.
        teacher: name of the teacher's network.
        beta: β of the task.
        title: its name in figures.
        beta_decay: the share that β loses per step.
        eval_every: steps between measurements.
        label_noise: probability that a label of the pool is replaced.
        top5: also record how often the label is among the five largest outputs.

    Returns:
        The task.

    Raises:
        InputError: if the file is missing, or has no such network.
    """
    loaded = load_features(name, file, teacher)
    return from_pool(
        name,
        pool_of(loaded, teacher),
        losses.cross_entropy,
        beta=beta,
        title=title,
        beta_decay=beta_decay,
        eval_every=eval_every,
        label_noise=label_noise,
        top5=top5,
        data_version=loaded.version,
    )


def pool_of(loaded: features.Features, teacher: str) -> Pool:
    """Return the views of the learner's and of the teacher's network, with their targets.

    Args:
        loaded: the content of a feature file.
        teacher: name of the teacher's network.

    Returns:
        The pool.
    """
    learner = loaded.card["learner"]
    return Pool(
        learner_x=loaded.views[learner],
        teacher_x=loaded.views[teacher],
        labels=loaded.labels,
        teacher_target=loaded.last_layers[teacher],
        learner_target=loaded.last_layers[learner],
        test_x=loaded.test_views[learner],
        test_labels=loaded.test_labels,
    )


def load_features(name: str, file: str, *networks: str) -> features.Features:
    """Return the feature file that task ``name`` needs.

    Raises:
        InputError: if the file is missing, or lacks one of these networks.
    """
    path = features.find(file)
    if path is None:
        raise InputError(
            f"task {name!r} needs features that are not shipped: "
            f"build them with ital features build {file} --data DIR"
        )
    loaded = features.load(path)
    for network in networks:
        if network not in loaded.views:
            raise InputError(
                f"{path} has no network {network!r}: choose from {', '.join(loaded.views)}"
            )
    return loaded


def mnist(teacher: int, *, label_noise: float = 0.0) -> Task:
    """MNIST through networks with 24 (learner) and 20 or 30 features (teacher). β = 30000.

    Args:
        teacher: features of the teacher's network, 20 or 30.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.
    """
    return from_features(
        f"mnist-{teacher}",
        "mnist",
        str(teacher),
        beta=30000.0,
        title=f"MNIST, teacher {teacher}-D",
        label_noise=label_noise,
    )


def cifar10(teacher: int, *, label_noise: float = 0.0) -> Task:
    """CIFAR-10 through CNNs of 9 (learner) and 6 or 12 layers (teacher). β = 50000, decaying.

    Args:
        teacher: layers of the teacher's network, 6 or 12.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.
    """
    return from_features(
        f"cifar10-{teacher}",
        "cifar10",
        str(teacher),
        beta=50000.0,
        beta_decay=5e-6,
        title=f"CIFAR-10, teacher CNN-{teacher}",
        label_noise=label_noise,
    )


def tiny_imagenet(teacher: str, *, label_noise: float = 0.0) -> Task:
    """Tiny ImageNet through EfficientNet-Lite1 (learner) and Lite0 or Lite2 (teacher). β = 1000.

    Args:
        teacher: the teacher's network, "lite0" or "lite2".
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.
    """
    return from_features(
        f"tiny-imagenet-{teacher}",
        "tiny-imagenet",
        teacher,
        beta=1000.0,
        title=f"Tiny ImageNet, teacher {teacher.capitalize()}",
        eval_every=20,
        label_noise=label_noise,
        top5=True,
    )


def tiny_imagenet_vgg(teacher: int, *, label_noise: float = 0.0) -> Task:
    """Tiny ImageNet through VGG-16 (learner) and VGG-13 or 19 (teacher), features to be built.
    β = 1000.

    Args:
        teacher: layers of the teacher's network, 13 or 19.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.
    """
    return from_features(
        f"tiny-imagenet-{teacher}",
        "tiny-imagenet-vgg",
        str(teacher),
        beta=1000.0,
        title=f"Tiny ImageNet, teacher VGG-{teacher}",
        eval_every=20,
        label_noise=label_noise,
        top5=True,
    )
