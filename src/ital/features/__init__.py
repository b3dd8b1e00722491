"""Feature files: what networks make of images, small enough to ship; building and checking them."""

from ital.features._file import Features, accuracy, find, load, own_folder, save

__all__ = ["Features", "accuracy", "find", "load", "own_folder", "save"]
