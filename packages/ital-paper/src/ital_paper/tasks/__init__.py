"""The paper's tasks on images and equations. ``ital.tasks`` finds them through entry points."""

import functools

from ital_paper.tasks._images import (
    cifar10,
    from_features,
    mnist,
    pool_of,
    tiny_imagenet,
    tiny_imagenet_vgg,
)
from ital_paper.tasks._mnist_mlp import mnist_mlp
from ital_paper.tasks._simplification import simplification
from ital_paper.tasks._view_scale import average_beta, scaled, scaled_for

mnist_20 = functools.partial(mnist, teacher=20)
mnist_30 = functools.partial(mnist, teacher=30)
cifar10_6 = functools.partial(cifar10, teacher=6)
cifar10_12 = functools.partial(cifar10, teacher=12)
tiny_imagenet_lite0 = functools.partial(tiny_imagenet, teacher="lite0")
tiny_imagenet_lite2 = functools.partial(tiny_imagenet, teacher="lite2")
tiny_imagenet_13 = functools.partial(tiny_imagenet_vgg, teacher=13)
tiny_imagenet_19 = functools.partial(tiny_imagenet_vgg, teacher=19)
equation_40 = functools.partial(simplification, teacher=40)
equation_50 = functools.partial(simplification, teacher=50)

__all__ = [
    "average_beta",
    "cifar10",
    "cifar10_6",
    "cifar10_12",
    "equation_40",
    "equation_50",
    "from_features",
    "mnist",
    "mnist_20",
    "mnist_30",
    "mnist_mlp",
    "pool_of",
    "scaled",
    "scaled_for",
    "simplification",
    "tiny_imagenet",
    "tiny_imagenet_13",
    "tiny_imagenet_19",
    "tiny_imagenet_lite0",
    "tiny_imagenet_lite2",
    "tiny_imagenet_vgg",
]
