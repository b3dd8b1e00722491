import pytest

from ital_paper.experiments import theory


@pytest.fixture
def programs(programs):
    """Those of the library, and the program of the theory panel."""
    return [*programs, (theory, "_promised", None)]
