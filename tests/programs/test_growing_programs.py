"""Families of programs that grow: the work of each phase grows with the program, and not faster.

Work is counted, not timed: the calls of Python functions while a phase runs, and the bindings that it leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay as R
from relay import relay
from relay.ir.traverse import count_bindings

X = np.arange(12.0).reshape(4, 3)


def joined(lines: list[str]) -> str:
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


def loops(n: int) -> str:
    """One loop after the other."""
    return joined([f"for i in range(50):\n        x = np.tanh(x * {k}.5 + i)" for k in range(n)] + ["return x.sum()"])


def filling(n: int) -> str:
    """Loops that fill lists."""
    parts = [f"a{k} = []\n    for i in range(50):\n        a{k}.append(np.tanh(x * {k}.5 + i).sum())" for k in range(n)]
    return joined([*parts, "return " + " + ".join(f"np.array(a{k}).sum()" for k in range(n))])


def appends(n: int) -> str:
    """Many lists in one loop."""
    results = " + ".join(f"np.array(a{k}).sum()" for k in range(n))
    body = "".join(f"\n        a{k}.append((x[i % 4] * {k}.5).sum())" for k in range(n))
    return joined([*(f"a{k} = []" for k in range(n)), f"for i in range(50):{body}", f"return {results}"])


def nested(n: int) -> str:
    """Loops inside of each other."""
    lines = ["s = x.sum()"]
    lines += ["    " * k + f"for i{k} in range(3):" for k in range(n)]
    return joined([*lines, "    " * n + "s = np.tanh(s)", "return s"])


def statements(n: int) -> str:
    """A long body."""
    body = "".join(f"\n        x = np.sin(x) * {k}.5 + x" for k in range(n))
    return joined([f"for i in range(50):{body}", "return x.sum()"])


def branches(n: int) -> str:
    """Branches in a loop."""
    body = "".join(f"\n        if s > {k}.0:\n            s = np.tanh(s) * {k}.5" for k in range(n))
    return joined(["s = x.sum()", f"for i in range(50):{body}", "return s"])


def copies(n: int) -> str:
    """Loops whose bodies are copied, since they are small."""
    parts = [f"a{k} = [np.sin(x[i]) * {k}.5 for i in range(4)]" for k in range(n)]
    return joined([*parts, "return " + " + ".join(f"a{k}[{k % 4}].sum()" for k in range(n))])


def chains(n: int) -> str:
    """A chain of elementwise operators, which is one kernel."""
    return joined([f"x = np.sin(x) * {k}.5" for k in range(n)] + ["return x.sum()"])


def reductions(n: int) -> str:
    """Reductions, each of which the next one needs."""
    lines = [f"x = x - np.exp(x).sum(axis={k % 2}, keepdims=True) * {k}.5" for k in range(n)]
    return joined([*lines, "return x.sum()"])


def kernels(n: int) -> str:
    """Kernels that differ from each other."""
    lines = [f"x = (x @ np.full((3, 3), {k}.5)).max(axis=1)[:, None] + x * {k}.5" for k in range(n)]
    return joined([*lines, "return x.sum()"])


def structures(n: int) -> str:
    """A structure that the program makes and reads."""
    items = ", ".join(f"x * {k}.5" for k in range(n))
    return joined([f"p = ({items})", "s = x", "for y in p:\n        s = s + np.tanh(y)", "return s.sum()"])


def closures(n: int) -> str:
    """Functions that call each other, the last of all."""
    lines = [f"f{k} = lambda v: f{k - 1}(v) * {k}.5" for k in range(1, n)]
    return joined(["f0 = lambda v: np.sin(v)", *lines, f"return f{n - 1}(x).sum()"])


def inside(n: int) -> str:
    """Functions that are defined inside of each other."""
    heads = [f"{'    ' * k}def f{k}(v{k}):" for k in range(n)]
    ends = [f"{'    ' * k}return f{k}(0.5)" for k in reversed(range(n))]
    return joined([*heads, f"{'    ' * n}return v{n - 1} * x.sum()", *ends])


def called_twice(n: int) -> str:
    """Functions that call the one before twice, so that the calls double with each."""
    lines = [f"f{k} = lambda v: f{k - 1}(v) * {k}.5 + f{k - 1}(v + 1.0)" for k in range(1, n)]
    return joined(["f0 = lambda v: v * 0.5", *lines, f"return f{n - 1}(x).sum()"])


def iterated(n: int) -> str:
    """A function that calls itself inside of the function that it returns."""
    lines = ["def it(g, i):", "    return (lambda v: v) if i == 0 else (lambda v: g(it(g, i - 1)(v)))"]
    return joined([*lines, f"return it(lambda v: v * 0.5 + 1.0, {n})(x[0, 0])"])


def composed(n: int) -> str:
    """Functions that a function makes of functions."""
    lines = ["compose = lambda g, h: lambda v: g(h(v))", "f0 = lambda v: np.sin(v) * 0.5"]
    lines += [f"f{k} = compose(f{k - 1}, lambda v: v * {k}.5)" for k in range(1, n)]
    return joined([*lines, f"return f{n - 1}(x).sum()"])


def chosen(n: int) -> str:
    """Functions that are chosen at run time, and call the ones before."""
    lines = ["f0 = lambda v: np.sin(v) * 0.5"]
    for k in range(1, n):
        arms = f"(lambda v: f{k - 1}(v) * {k}.5)", f"(lambda v: f{k - 1}(v) + {k}.5)"
        lines.append(f"f{k} = {arms[0]} if x[0, 0] > {k} else {arms[1]}")
    return joined([*lines, f"return f{n - 1}(x).sum()"])


def gradients(n: int) -> str:
    """Derivatives of many functions."""
    lines = [f"x = x - relay.grad(lambda v: (np.sin(v) * {k}.5).sum())(x)" for k in range(n)]
    return joined([*lines, "return x.sum()"])


def orders(n: int) -> str:
    """The derivative of a derivative of a derivative .."""
    lines = ["f0 = lambda v: np.sin(v)", *(f"f{k} = relay.grad(f{k - 1})" for k in range(1, n))]
    return joined([*lines, f"return f{n - 1}(x[0, 0])"])


FAMILIES: dict[str, tuple[Callable[[int], str], int]] = {
    f.__name__: (f, n)
    for f, n in [
        (loops, 4), (filling, 3), (appends, 16), (nested, 2), (statements, 8), (branches, 4), (copies, 8), (chains, 12),
        (reductions, 5), (kernels, 4), (structures, 8), (closures, 10), (composed, 8), (chosen, 18), (gradients, 4),
        (orders, 6), (inside, 4), (iterated, 4), (called_twice, 8),
    ]
}  # fmt: skip
"""Each with the smaller of its two sizes. Chosen functions capture the ones before them. Up to sixteen levels of such
values are tuples and deeper ones are boxed, which takes several times the code: both sizes are beyond that step. So are
they for the lists of a loop, up to eight of which are one kernel."""


def counted(run: Callable[[], Any]) -> tuple[int, Any]:
    """How many Python functions are called, and what comes of it."""
    calls = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(profile)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    return calls, result


def made(text: str, derivative: bool) -> Any:
    function = R.from_source(text, {"np": np, "relay": relay})
    return relay.grad(function) if derivative else function


def size(module: Any) -> int:
    return sum(count_bindings(f.body) for f in module.functions.values())


class _Generated(BaseException):
    """Code generation is done: what would be compiled by LLVM. No exception that a bug might raise, which would be
    reported as one."""


def generated(function: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many Python functions code generation calls, and how many functions it makes."""
    from relay.codegen.lowering import module_builder
    from relay.codegen.tvm import tir

    found: list[int] = []

    def stop(functions: dict[Any, Any], *rest: Any) -> Any:
        found.append(len(functions))
        raise _Generated

    monkeypatch.setattr(tir, "build", stop)
    core = function.core(X)

    def run() -> None:
        with pytest.raises(_Generated):
            module_builder.assemble(core, 1, {}, frozenset())

    calls, _ = counted(run)
    monkeypatch.undo()
    return calls, sum(found)


LARGEST_RATIO = 2.3
"""Of the work for a program and for one half as large; n log n has 2.2 or less at these sizes."""


VALUES_ONLY = {"chosen", "called_twice"}
"""Families whose gradients have a test of their own."""


def test_gradients_of_functions_that_are_chosen_in_a_chain_grow_with_it() -> None:
    """What such a function has captured is the one before, with all that it has captured: passed on as one value. Where
    chains are long enough for that, bindings are counted, which takes less time than calls."""
    small, large = (size(made(chosen(n), True).core(X)) for n in (18, 36))
    assert large <= LARGEST_RATIO * small, (small, large)


def test_tapes_of_functions_that_are_called_twice_do_not_double() -> None:
    """The tape of such a function has that of the one before twice: types are trees, and would double with each."""
    small, large = (len(str(made(called_twice(n), True).core(X))) for n in (10, 20))
    assert large <= 5 * small, (small, large)  # 21 times if they did


def test_the_types_of_functions_that_are_called_twice_take_work_in_proportion() -> None:
    """Also where nothing is known of the arguments, as for `f.type` and in files that are checked."""
    lines = [f"def f{k}(v): return f{k - 1}(v) * {k}.5 + f{k - 1}(v + 1.0)\n" for k in range(1, 16)]
    functions: Any = R.from_source("".join(["def f0(v): return v * 0.5\n", *lines]), {"relay": relay})
    _, small, large = (counted(lambda n=n: functions[f"f{n}"].type)[0] for n in (1, 7, 14))
    assert large <= LARGEST_RATIO * small, (small, large)


@pytest.mark.parametrize(
    ("name", "derivative"), [(f, d) for f in FAMILIES for d in (False, True) if not (d and f in VALUES_ONLY)]
)
def test_work_grows_with_the_program(name: str, derivative: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    family, n = FAMILIES[name]
    work: dict[str, list[int]] = {}
    for count in (1, n, 2 * n):  # the first one fills caches
        calls, function = counted(lambda c=count: made(family(c), derivative))
        work.setdefault("calls of the front end", []).append(calls)
        work.setdefault("calls of elaboration", []).append(counted(lambda f=function: f.typed(X))[0])
        work.setdefault("bindings of elaboration", []).append(size(function.typed(X)))
        work.setdefault("calls of the optimizer", []).append(counted(lambda f=function: f.core(X))[0])
        work.setdefault("bindings of the optimizer", []).append(size(function.core(X)))
        calls, functions = generated(function, monkeypatch)
        work.setdefault("calls of code generation", []).append(calls)
        work.setdefault("functions of code generation", []).append(functions)
    ratios = {what: large / max(small, 1) for what, (_, small, large) in work.items()}
    assert {what: ratio for what, ratio in ratios.items() if ratio > LARGEST_RATIO} == {}, work


@pytest.mark.parametrize("derivative", [False, True], ids=["value", "gradient"])
def test_work_does_not_grow_with_rounds(derivative: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of known extent that fills a list costs at most what few copies of its body do, and not more from then
    on."""
    text = "def f(x):\n    h, hs = x[0], []\n    for i in range({}):\n        h = np.tanh(h + x[i % 4])\n"
    text += "        hs.append(h)\n    return np.stack(hs).sum()\n"
    work: dict[int, tuple[int, ...]] = {}
    for rounds in (8, 8, 16, 32, 64, 256, 1024):  # the first one fills caches
        function = made(text.format(rounds), derivative)
        typed, core = counted(lambda f=function: f.typed(X))[0], counted(lambda f=function: f.core(X))[0]
        work[rounds] = (typed, core, *generated(function, monkeypatch), size(function.core(X)))
    rolled = np.array([work[n] for n in (32, 64, 256, 1024)])
    assert (rolled.max(axis=0) <= 1.1 * rolled.min(axis=0)).all(), work
    assert (np.array([work[8], work[16]]).max(axis=0) <= 8 * rolled[0]).all(), work
