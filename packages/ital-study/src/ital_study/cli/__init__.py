"""The commands ``ital study …`` and ``ital play``."""
