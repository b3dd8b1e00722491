import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.golden import tasks

# In IRL a tie may fall the other way.
TOLERANCES = {"regression": 2e-5, "gaussian": 2e-5, "irl-dense": 3e-4}


@pytest.mark.parametrize("task", tasks.TASKS)
def test_curves_of_the_papers_tasks_are_what_they_were(task):
    """golden/tasks.py compares bit by bit; other machines and flags round differently."""
    expected = json.loads(tasks.FILE.read_text())[task]
    for teacher in tasks.TEACHERS:
        # One rule, one program.
        methods = ("ital", "ital-5") if teacher == "omniscient" else tasks.METHODS
        found = tasks.curves(task, teacher, methods)
        for metric, by_method in expected[teacher].items():
            for method in methods:
                curve = by_method[method]
                np.testing.assert_allclose(
                    found[metric][method],
                    curve,
                    rtol=TOLERANCES[task],
                    err_msg=f"{teacher} {method}",
                )


AS_USERS_DO = """
import json
from tests.golden import tasks
# The last method has a program of its own.
print(json.dumps(tasks.curves("gaussian", "cooperative", tasks.METHODS[:-1])))
"""


def test_compiled_as_users_compile_the_curves_are_the_same():
    """With XLA's own flags, in place of those that make the tests quick (conftest.py), and in
    float32.
    """
    as_users = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "PJRT_NPROC")
    }
    command = [sys.executable, "-c", AS_USERS_DO]
    root = Path(__file__).parents[1]
    done = subprocess.run(
        command, cwd=root, env=as_users, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    expected = json.loads(tasks.FILE.read_text())["gaussian"]["cooperative"]
    assert found.keys() == expected.keys()
    for metric, by_method in found.items():
        for method, curves in by_method.items():
            assert np.array_equal(np.float32(curves), curves), "in single precision"
            np.testing.assert_allclose(
                curves,
                expected[metric][method],
                rtol=TOLERANCES["gaussian"],
                err_msg=f"{metric} {method}",
            )
