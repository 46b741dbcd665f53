"""Settings for all tests: one thread and bounded memory a worker, the same random programs in every run."""

import gc
import importlib.abc
import os
import signal
import sys
import zlib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from matrix import SEED, everything

# Before anything loads a numeric library: the workers share the cores, and thread pools spin against each other.
for _variable in ("RELAY_NUM_THREADS", "TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["RELAY_CACHE_SIZE"] = "0"  # what the tests compile, they compile
os.environ.setdefault("RELAY_VERIFY", "1")  # and try
# Each of several hundred processes that tests start would compile the package's sources anew, for a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job, whose children ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

if sys.platform == "linux":
    import resource

    # A program that runs away with memory fails its own test and leaves the machine alone.
    _limit, _hard = 8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_limit if _hard < 0 else min(_limit, _hard), _hard))

settings.register_profile(
    "relay",
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,  # a first example compiles
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("relay")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the results in tests/golden anew")


def pytest_report_header() -> str:
    return f"sample of the large matrices: RELAY_TEST_SEED={SEED}" if not everything() else "nothing is left out"


def pytest_sessionstart() -> None:
    gc.disable()  # what is loaded for the tests stays


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # so that no later collection looks through it
    gc.enable()


@pytest.fixture
def low_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests whose subject is neither machine code nor its speed: LLVM optimizes nothing, in half the time.

    Its fast selection of instructions (FastISel) is off, too: with it, a * b + c is not rounded alike in vectors and in
    the elements behind them. Equal elements would differ, and with them what depends on ties."""
    from relay.codegen.tvm import tir

    optimized = tir.target

    def target(*arguments: Any, **options: Any) -> Any:
        usual = optimized(*arguments, **options)
        described = dict(usual.export())
        flags = [*described.pop("cl-opt", ()), "-fast-isel:int=2"]  # LLVM's BOU_FALSE
        return type(usual)({**described, "opt-level": 0, "cl-opt": flags})

    monkeypatch.setattr(tir, "target", target)


MEANING = frozenset({"ad", "calling", "cli", "documentation", "elaboration", "errors", "eval", "typecheck"})
"""Folders of tests of what programs mean, and not of machine code, which `codegen`, `kernels`, `ops`, `programs` and
`compilation` are about."""


@pytest.fixture(autouse=True)
def effort(request: pytest.FixtureRequest) -> None:
    """`low_effort` for tests of what programs mean, but for a tenth of their files, another one each day."""
    optimized = everything() or (zlib.crc32(request.path.name.encode()) + SEED) % 10 == 0
    if request.path.parent.name in MEANING and not optimized:
        request.getfixturevalue("low_effort")


class _Absent(importlib.abc.MetaPathFinder):
    """Makes the optional frameworks look as if they were not installed, wherever the tests run."""

    names = frozenset({"torch", "jax", "jaxlib"})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"the tests do without {fullname}", name=fullname)
        return None


sys.meta_path.insert(0, _Absent())
