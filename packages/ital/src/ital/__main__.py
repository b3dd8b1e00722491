"""``python -m ital``: the command line."""

from ital.cli import main

if __name__ == "__main__":
    main()
