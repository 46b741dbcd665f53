"""Indices that are computed from indices: programs that read elements at conditional, periodic and divided positions
compile in time in proportion to their length.

Arithmetic on conditions and remainders takes compilers exponential time where nothing bounds it: each program here
would take hours. They are compiled in a process of their own, which the system stops after so many seconds of work.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

SECONDS = 120
"""Of processor time: some fifteen times what all programs of a process take."""

LENGTH = 16


def _sum(term: Callable[[int], str]) -> str:
    return " + ".join(map(term, range(LENGTH)))


def _returned(value: str) -> str:
    return f"    return {value}\n"


def _divided(shape: tuple[int, ...], order: tuple[int, ...]) -> str:
    return f"np.transpose(g.reshape({shape}), {order}).reshape(24, 24)"


def _chain(step: Callable[[int], str]) -> str:
    return "".join(f"    g = {step(i)}\n" for i in range(LENGTH)) + "    return g\n"


def _loop(element: str) -> str:
    lines = ("h, w = g.shape", "out = np.zeros_like(g)", "for i in range(h):", "    for j in range(w):")
    return "".join(f"    {line}\n" for line in lines) + f"            out[i, j] = {element}\n    return out\n"


PROGRAMS = {
    "rolls": _returned(_sum(lambda i: f"np.roll(np.roll(g, {i % 5 - 2}, axis=0), {i - 9}, axis=1)")),
    "periodic reads": _loop(_sum(lambda i: f"g[(i + {i % 5}) % h, (j + {i // 5}) % w]")),
    "conditional reads": _loop(_sum(lambda i: f"(g[i - {i}, j] if i >= {i} and j > {i % 3} else 0.0)")),
    "choices": _returned(_sum(lambda i: f"np.where(np.arange(24) % {i + 2} == 0, np.roll(g, {i}, axis=1), g)")),
    "reshapes": _chain(lambda i: f"{_divided(((4, 6, 24), (2, 12, 24))[i % 2], (1, 0, 2))} + 1.0"),
    "blocks": _chain(lambda i: _divided(((4, 6, 3, 8), (2, 12, 4, 6))[i % 2], (0, 2, 1, 3))),
    "rolls of all elements": _chain(lambda i: f"np.roll(g, {7 * i + 1})"),
    "triangles": _chain(lambda i: f"np.tril(np.roll(g, {i + 1}, axis={i % 2}), {i})"),
    "reversed rows": _chain(lambda i: f"g.reshape(-1)[::-1].reshape(24, 24).T * {i % 2 + 0.5}"),
    "sums of rolls": _chain(lambda i: f"g + np.roll(g, {i % 7 + 1}, axis={i % 2})"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on a process's work is the system's")
@pytest.mark.parametrize("dynamic", [False, True], ids=["known-sizes", "symbolic-sizes"])
def test_programs_compile_in_bounded_time(dynamic: bool) -> None:
    lines = ["import numpy as np", "import relay as rl", "from relay import relay", "functions = []"]
    text = "\n".join(f"@relay(dynamic={dynamic})\ndef f{n}(g):\n{body}" for n, body in enumerate(PROGRAMS.values()))
    lines += [
        f"functions = rl.from_source({text!r}, {{'np': np, 'relay': relay}})",
        "g = np.random.default_rng(0).integers(-9, 9, (24, 24)).astype(np.float64) / 8",
        f"for function, name in zip(functions.values(), {list(PROGRAMS)!r}):",
        "    print(name, flush=True)",
        "    np.testing.assert_allclose(function(g), function.interpret(g), rtol=1e-12, err_msg=name)",
    ]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, preexec_fn=limited, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == list(PROGRAMS)
