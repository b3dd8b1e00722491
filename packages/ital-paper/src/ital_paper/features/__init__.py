"""Feature files: outputs of networks on images and equations, small enough to ship.

Building and checking them.
"""

from ital_paper.features._build import build
from ital_paper.features._check import check
from ital_paper.features._file import Features, accuracy, find, load, own_folder, save
from ital_paper.features._get import get_data
from ital_paper.features._learned import equation_file, explorer, learned_value

__all__ = [
    "Features",
    "accuracy",
    "build",
    "check",
    "equation_file",
    "explorer",
    "find",
    "get_data",
    "learned_value",
    "load",
    "own_folder",
    "save",
]
