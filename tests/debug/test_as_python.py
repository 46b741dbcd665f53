"""`relay.as_python()`: decorated functions as the Python that they are."""

from __future__ import annotations

import asyncio
import copy
import io
import pdb
import sys
import threading
import trace
import warnings
from types import FrameType
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, leaves
from matrix import sample
from zoo import Program, programs

import relay
from relay import Float32, Float64, Tensor, TypeMismatch, dims, tree
from relay.random import key, normal
from relay.support import python_mode

NUMBER = "a number of Python's has no methods of arrays"
REFERENCE = "the Python function that is differentiated has a reference around it"
NAMED = "axes have no names"

EXCEPTIONS = {
    **dict.fromkeys(("named_axes.named_layers", "named_axes.named_loop", "named_axes.channels_last"), NAMED),
    "outside_references.captured_twice": REFERENCE,
    "outside_references.grown_list": REFERENCE,
    "outside_references.returned_by_vjp": REFERENCE,
    "data_types.truths": "`case True` is for Python's own booleans",
    "structures.by_structure": "`case [a, *b]` is for Python's tuples, too",
    "straight_line.bits": "Python's `~True` is -2",
    "data_types.list_loop": "a `List` is no iterable of Python",
    "higher_order.gradient_of_iterated": "the function that is differentiated has no type of its own",
    "records_in_cells.grown": NUMBER,
    "records_in_cells.length": NUMBER,
    "list_gradients.slopes_of_product": NUMBER,
    "list_gradients.trained": NUMBER,
    "list_gradients.of_a_structure": NUMBER,
    "list_gradients.pulled_back": NUMBER,
    "higher_order.chosen_with_made_sizes": NUMBER,
    "higher_order.holding_made_sizes": NUMBER,
}
"""Programs of the zoo that fail, or give something else, and why."""

(n,) = dims("n")


def run(function: Any, *arguments: Any) -> Any:
    with relay.as_python():
        return function(*arguments)


def name(program: Program) -> str:
    python = program.function.python
    file = "" if python is None else python.__module__.rpartition(".")[2]
    return f"{file}.{program.name}"


def agrees(program: Program) -> bool:
    """Whether the values are the interpreter's. The dtype of a number of Python's may be another."""
    wanted = program.function.interpret(*copy.deepcopy(program.arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as NumPy's, of infinities
        found = run(program.function, *copy.deepcopy(program.arguments))
    pairs = zip(leaves(found), leaves(wanted), strict=True)
    return all(np.allclose(*(np.asarray(x, np.float64) for x in pair), rtol=1e-6, equal_nan=True) for pair in pairs)


@pytest.mark.parametrize("program", sample([p for p in programs() if name(p) not in EXCEPTIONS], 50), ids=name)
def test_the_zoo_agrees(program: Program) -> None:
    before = [np.array(leaf) for leaf in leaves(program.arguments)]
    assert agrees(program)
    for array, own in zip(before, leaves(program.arguments), strict=True):
        np.testing.assert_array_equal(array, own)


def fails(program: Program) -> bool:
    try:
        return not agrees(program)
    except Exception:
        return True


@pytest.mark.parametrize("exception", sample(sorted(EXCEPTIONS), 6))
def test_the_exceptions_are_some(exception: str) -> None:
    assert any(fails(program) for program in programs() if name(program) == exception)


# ---- tools of Python's


@relay
def inner(x, k):
    y = x * 2.0
    return y + k


@relay
def outer(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 100.0:  # noqa: SIM108
            total = total - 1.0
        else:
            total = total + inner(x[i], 1.0)
    return total


def test_traces_see_the_lines() -> None:
    seen: list[tuple[str, int]] = []

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_code.co_filename == __file__:
            seen.append((frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        run(outer, np.array([1.0, 2.0]))
    finally:
        sys.settrace(before)
    assert seen.count(("inner", 2)) == 2 and ("outer", 7) in seen and ("outer", 5) not in seen


def test_coverage_counts_the_lines() -> None:
    before = sys.gettrace()
    counting = trace.Trace(count=1, trace=0)
    counting.runfunc(run, outer, np.array([1.0, 2.0, 200.0]))
    sys.settrace(before)
    first = outer.python.__code__.co_firstlineno
    counts = {line - first: count for (file, line), count in counting.results().counts.items() if file == __file__}
    assert counts[5] == 1 and counts[7] == 2


def debugged(commands: str, function: Any, *arguments: Any) -> str:
    """What `pdb` says to these commands, from a call on."""
    said = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=said, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    with relay.as_python():
        debugger.runcall(function, *arguments)
    return said.getvalue()


def test_pdb_stops_in_a_decorated_function() -> None:
    line = inner.python.__code__.co_firstlineno + 2
    said = debugged(f"b {__file__}:{line}\nc\np float(x), x.shape, k\nn\np float(y)\nw\nq\n", outer, np.array([3.0]))
    assert "(3.0, (), 1.0)" in said and "6.0" in said
    assert "outer" in said and "-> return y + k" in said
    said = debugged("b self\nc\np float(x[0])\nq\n", outer, np.array([3.0]))  # the decorated function
    assert "outer()" in said and "3.0" in said


def test_breakpoint_in_a_program(monkeypatch) -> None:
    @relay
    def stops(x):
        y = x + 1.0
        relay.breakpoint()
        return y * 2.0

    hooks: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: hooks.append("stopped"))
    assert float(run(stops, np.float64(1.0))) == 4.0 and hooks == ["stopped"]
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setattr(sys, "stdin", io.StringIO("p float(y)\nq\n"))
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    with pytest.raises(pdb.bdb.BdbQuit):
        run(stops, np.float64(1.0))
    line = "return y * 2.0" if sys.version_info < (3, 13) else "relay.breakpoint()"  # pdb stops at once from 3.13 on
    assert "2.0" in said.getvalue() and line in said.getvalue()


# ---- values


def test_arguments_stay_and_results_are_arrays() -> None:
    @relay
    def changed(x, xs):
        x[0] = 7.0
        y = x[1:]
        y[0] = 9.0
        xs.append(x)
        return x, y, {"all": xs, "count": len(xs)}

    x, xs = np.array([1.0, 2.0]), [np.zeros(2)]
    first, second, rest = run(changed, x, xs)
    assert x.tolist() == [1.0, 2.0] and len(xs) == 1
    assert type(first) is relay.Array and first.tolist() == [7.0, 2.0] and second.tolist() == [9.0]
    assert [a.tolist() for a in rest["all"]] == [[0.0, 0.0], [7.0, 2.0]]
    assert type(rest["count"]) is relay.Array and rest["count"].dtype == np.int32


def test_a_called_function_changes_its_own_array() -> None:
    @relay
    def zeroed(x):
        x[0] = 0.0
        return x.sum()

    @relay
    def twice(x):
        x[1] = 5.0
        return zeroed(x.copy()) + x.sum()

    x = np.array([1.0, 2.0])
    assert_close(run(twice, x), twice.interpret(x))
    assert x.tolist() == [1.0, 2.0]


TABLE = np.array([1.0, 2.0])


def test_arrays_around_a_function_stay() -> None:
    other = np.array([3.0, 4.0])

    @relay
    def around(x):
        t, o = TABLE, other
        t += x
        o[0] = 0.0
        return t.sum() + o.sum()

    assert float(run(around, np.float64(1.0))) == 9.0
    assert TABLE.tolist() == [1.0, 2.0] and other.tolist() == [3.0, 4.0]


def test_sizes_and_annotated_dtypes_are_values() -> None:
    @relay
    def scaled(x: Tensor[Float64, (n, 2)], by: Tensor[Float32, ()]):
        total = 0.0
        for i in range(n):
            total = total + x[i].sum() / n
        return total, by, relay.zeros((n, 2 * n))

    x = np.ones((3, 2))
    for found, wanted in zip(run(scaled, x, 2.0), scaled.interpret(x, 2.0), strict=True):
        assert found.dtype == wanted.dtype
        assert_close(found, wanted)


def test_references_random_numbers_and_trees() -> None:
    @relay
    def counted(r, x):
        r.value += 1.0
        relay.write(r, relay.read(r) * 2.0)
        drawn = normal(key(3), (2,), Float64)
        both = tree.map(lambda a: a + r.value, {"x": x, "drawn": drawn})
        return both

    r, same = relay.ref(np.float64(1.0)), relay.ref(np.float64(1.0))
    found, wanted = run(counted, r, np.ones(2)), counted.interpret(same, np.ones(2))
    assert float(r.value) == float(same.value) == 4.0 and type(r.value) is relay.Array
    assert_close(found["drawn"], wanted["drawn"])
    assert_close(found["x"], wanted["x"])


def test_operators_of_users() -> None:
    @relay.composite
    def half_in_python(x: Tensor):
        """Half of it. x: (T float, s) -> (T, s)."""
        return x * 0.5

    @relay
    def used(x):
        return half_in_python(x) + relay.maximum(x, 0.0)

    assert_close(run(used, np.array([-2.0, 4.0])), np.array([-1.0, 6.0]))


def test_derivatives_run_on_the_interpreter() -> None:
    @relay
    def trained(x, rate):
        def loss(v):
            return inner(v, 1.0) * rate + (v * v).sum()

        for _ in range(3):
            x = x - rate * relay.grad(loss)(x)
        value, pullback = relay.vjp(loss, x)
        return x, value, pullback(2.0), relay.hessian(lambda v: (v * v * v).sum())(x)

    given = np.float64(2.0), np.float64(0.1)
    for found, wanted in zip(run(trained, *given), trained.interpret(*given), strict=True):
        assert_close(found, wanted)


def test_methods_of_data_run_as_python() -> None:
    names: list[str] = []

    @relay.data
    class Point:
        x: Tensor[Float64, ()]
        y: Tensor[Float64, ()]

        def norm(self):
            return relay.sqrt(self.x * self.x + self.y * self.y)

    @relay
    def length(p):
        match p:
            case Point(x, _):
                return p.norm() + x

    def tracer(frame: FrameType, event: str, argument: Any) -> None:
        names.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        assert float(run(length, Point(np.float64(3.0), np.float64(4.0)))) == 8.0
    finally:
        sys.settrace(before)
    assert "norm" in names


# ---- errors, and who is concerned


def test_errors_are_python_s() -> None:
    @relay
    def failing(x, k):
        assert k < 10, "too many"
        return x[k] // x[0]

    with pytest.raises(AssertionError, match="too many"):
        run(failing, np.arange(3), 11)
    with pytest.raises(IndexError):
        run(failing, np.arange(3), 5)
    with pytest.raises(ZeroDivisionError):
        run(failing, np.arange(3), 1)

    @relay
    def clashing(x):
        return relay.matmul(x, x)

    with pytest.raises(TypeMismatch, match="inner extents 3 and 2 differ"):
        run(clashing, np.ones((2, 3)))
    with pytest.raises(relay.TypeCheckError, match="inside decorated functions only"):
        relay.read(relay.ref(1.0))


def test_other_threads_and_tasks_compile() -> None:
    @relay
    def seen(x):
        return x + 1.0

    types: dict[str, int] = {}

    def count(where: str) -> None:
        seen(np.float64(1.0))
        types[where] = len(seen.programs())

    with relay.as_python():
        count("here")
        thread = threading.Thread(target=count, args=("thread",))
        thread.start()
        thread.join()
    assert types == {"here": 0, "thread": 1}

    async def plain() -> None:
        with relay.as_python():
            await asyncio.sleep(0.01)
            assert python_mode.active.get() is not None

    async def compiled() -> None:
        await asyncio.sleep(0.005)
        assert python_mode.active.get() is None

    async def both() -> None:
        await asyncio.gather(plain(), compiled())

    asyncio.run(both())
    with pytest.raises(RuntimeError, match="out"), relay.as_python():
        raise RuntimeError("out")
    assert python_mode.active.get() is None
