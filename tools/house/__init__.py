"""Rules of the house that neither ruff nor import-linter checks: ``python -m tools.house``, in
``make lint``.

``walls`` looks at who imports whom, ``docstrings`` at what public names document, ``words`` at the
words that people read, ``density`` at how much stands on a line.
"""
