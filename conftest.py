import functools
import gc
import os
import signal
from importlib.metadata import version
from pathlib import Path

# Workers, servers and commands that tests start share one cache, so each program is compiled once.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / "build" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")  # the many small ones too
# Threads of NumPy's and XLA's products wait by spinning: beside other workers they would do nothing
# else.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PJRT_NPROC", "1")
# Compilation takes most of the tests' time, and most programs run only briefly; see ``optimised``
# and ``fast``.
FUSION_EMITTERS = "xla_cpu_use_fusion_emitters"
# JAX 0.11 dropped the option.
HAS_EMITTERS = tuple(map(int, version("jax").split(".")[:2])) < (0, 11)
QUICK = "--xla_backend_optimization_level=0" + (
    f" --{FUSION_EMITTERS}=false" if HAS_EMITTERS else ""
)
os.environ.setdefault("XLA_FLAGS", QUICK)

import matplotlib as mpl
import matplotlib.figure
import pytest
from hypothesis import Phase, settings
from jaxtyping import install_import_hook

# Every call in a test checks the shapes in the annotations.
SHAPED = (
    "gradients",
    "learners",
    "lessons",
    "losses",
    "mdp",
    "models",
    "rationality",
    "steps",
    "tasks",
    "teachers",
    "theory",
)
install_import_hook(
    [f"ital.{name}" for name in (*SHAPED, "beliefs", "volume", "teaching")], "beartype.beartype"
)
# Tracing makes many long-lived objects: scanning them repeatedly would take a tenth of the time.
gc.set_threshold(100_000, 50, 100)

import jax

jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: (
        _compiled.append(seconds) if event.endswith("backend_compile_duration") else None
    )
)
mpl.use("Agg")
settings.register_profile("ital", deadline=None, derandomize=True, max_examples=30)
# One counterexample is enough for a mutant (tools/mutants).
settings.register_profile(
    "mutants", settings.get_profile("ital"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ital"))


def pytest_addoption(parser):
    parser.addoption(
        "--programs", type=int, default=0, metavar="N", help="List the N tests that compile most."
    )


_compiled = []  # seconds of each compilation since the test began


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    _compiled.clear()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    yield
    item.user_properties[:] = [("compiled", (len(_compiled), sum(_compiled)))]


def pytest_terminal_summary(terminalreporter, config):
    number = config.getoption("--programs")
    last = {
        r.nodeid: dict(r.user_properties)["compiled"]
        for r in terminalreporter.getreports("")
        if r.user_properties
    }
    if not number or not last:
        return
    terminalreporter.section("programs compiled")
    for name, (count, seconds) in sorted(last.items(), key=lambda one: -one[1][1])[:number]:
        terminalreporter.line(f"{count:5}  {seconds:7.2f} s  {name}")
    count, seconds = (sum(column) for column in zip(*last.values(), strict=True))
    terminalreporter.line(f"{count:5}  {seconds:7.2f} s  in all {len(last)} tests")


@pytest.fixture
def x64():
    """Float64 for the duration of a test."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@functools.cache
def _compiled_with(plain, donated, level, emitters):
    options = {"xla_backend_optimization_level": level}
    if HAS_EMITTERS:
        options[FUSION_EMITTERS] = emitters
    return jax.jit(plain, static_argnums=0, donate_argnums=donated, compiler_options=options)


@pytest.fixture
def programs():
    """The programs that ``optimised`` compiles: a module, a name in it, the argument whose memory
    is reused.
    """
    from ital.teaching import _session

    return [(_session, "run_block", 2)]


@pytest.fixture
def optimised(monkeypatch, programs):
    """The teaching loop compiled as for users, for tests that compare every digit."""
    for module, name, donated in programs:
        monkeypatch.setattr(
            module, name, _compiled_with(getattr(module, name).__wrapped__, donated, 3, True)
        )


@pytest.fixture
def fast(monkeypatch):
    """The teaching loop as fast as for users, compiled in half the time, for tests that teach many
    steps.
    """
    from ital.teaching import _session

    monkeypatch.setattr(
        _session, "run_block", _compiled_with(_session.run_block.__wrapped__, 2, 1, False)
    )


@pytest.fixture
def undrawn(request, monkeypatch):
    """Write empty figure files, except in tests marked ``drawn``: drawing takes longer than
    teaching.

    The SVG of pages is drawn.
    """
    if "drawn" in request.keywords:
        return
    drawn = mpl.figure.Figure.savefig

    def savefig(figure, file, format, **options):
        return (
            drawn(figure, file, format=format, **options)
            if format == "svg"
            else file.write(b"%PDF")
        )

    monkeypatch.setattr(mpl.figure.Figure, "savefig", savefig)


@pytest.fixture(autouse=True)
def _handlers_of_signals():
    """Restore what a command changes for the rest of its process, which here has other tests."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs():
    """Drop compiled programs between files: each maps memory, and the system limits the maps of a
    process.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > 20_000:
        jax.clear_caches()
