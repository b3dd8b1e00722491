"""The report of ``ital reproduce``: its page and its sections."""
