"""Errors that are the input's fault, said in one line."""


class InputError(ValueError):
    """Bad input: says what was wrong, what is allowed, and what to do. The command line ends with status 2 on it."""


__all__ = ["InputError"]
