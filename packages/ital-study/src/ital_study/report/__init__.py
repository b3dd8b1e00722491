"""The report of a study: its page, figures and sections."""
