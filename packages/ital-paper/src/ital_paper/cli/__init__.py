"""The commands ``ital reproduce``, ``simplify``, ``features`` and ``data``."""
