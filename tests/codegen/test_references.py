"""References and lists between Python and programs: compiled calls leave the same behind as interpreted ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise, modes

import relay
from relay import Float, Int, Ref, Tensor
from relay.api.function import RelayFunction
from relay.errors import ExecutionError, TypeMismatch
from relay.ir.protocols import is_value

F = Tensor[Float, ()]
REGISTRY: list[tuple[Any, Callable[[], tuple[Any, ...]]]] = []


def case(*makers: Callable[[], tuple[Any, ...]]) -> Callable[[Any], RelayFunction]:
    """A function to be tried with the arguments that each of these makes."""

    def register(python: Any) -> RelayFunction:
        function = relay.relay(python)
        REGISTRY.extend((function, maker) for maker in makers)
        return function

    return register


def seen(values: Any) -> str:
    """What there is to see of values, with a number for each reference in the order of their appearance."""
    numbers: dict[int, int] = {}

    def show(value: Any) -> str:
        if isinstance(value, Ref):
            known = id(value) in numbers
            number = numbers.setdefault(id(value), len(numbers))
            return f"#{number}" if known else f"#{number}={show(value.value)}"
        if isinstance(value, tuple | list):
            return f"{type(value).__name__}({', '.join(map(show, value))})"
        if isinstance(value, dict):
            return f"dict({', '.join(f'{k}: {show(v)}' for k, v in value.items())})"
        if is_value(value):
            return f"{type(value).__name__}({', '.join(map(show, vars(value).values()))})"
        if value is None:
            return "None"
        array = np.asarray(value)
        return f"{type(value).__name__} {array.dtype} {array.tolist()}"

    return show(values)


def outcome(run: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """The result or error of a call, and what the arguments are after it."""
    try:
        result = seen((run(*arguments), arguments))
    except ExecutionError as error:
        result = f"{error.message}; {seen(arguments)}"
    return result


# ---- programs


def same_twice() -> tuple[Any, ...]:
    cell = relay.ref(2.0)
    return cell, cell


@case(lambda: (relay.ref(1.0),), lambda: (relay.ref(np.ones(3)),), lambda: (relay.ref(relay.ref(1.0).value),))
def bumped(r):
    r.value += 1.0
    return r.value


@case(lambda: (relay.ref(np.zeros(2, np.float32)),))
def only_written(r):
    r.value = relay.ones((2,))


@case(lambda: (relay.ref(1.5), 2), lambda: (relay.ref(np.arange(3)), 0))
def only_read(r, n):
    return r.value + r.value, n


@case(lambda: (relay.ref(1.0), relay.ref(5.0)), same_twice)
def two(a, b):
    a.value = 5.0
    b.value += 1.0
    return a.value


@case(lambda: (1.0,))
def made(x):
    first = relay.ref(x)
    return first, relay.ref(x), [first, relay.ref((x, first))]


@case(lambda: (relay.ref(1.0), relay.ref(2.0), True), lambda: (relay.ref(1.0), relay.ref(2.0), False))
def chosen(a, b, c):
    r = a if c else b
    r.value *= 10.0
    return r, a if not c else relay.ref(0.0)


@case(lambda: (relay.ref(relay.ref(1.0)),))
def nested(outer):
    old = outer.value
    old.value = 3.0
    outer.value = relay.ref(9.0)
    return old, outer


def cells_that_meet() -> tuple[Any, ...]:
    inner = relay.ref(1.0)
    return relay.ref(inner), inner, {"again": inner}


@case(cells_that_meet)
def through_a_cell(outer, inner, record):
    outer.value.value += 1.0
    inner.value *= 3.0
    record["again"].value -= 0.5
    return record


@case(lambda: (relay.ref({"weights": np.ones(2), "steps": 3}), 0.5))
def trained(state, rate):
    state.value = {"weights": state.value["weights"] * (1.0 - rate), "steps": state.value["steps"] + 1}
    return state.value["weights"].sum()


@case(lambda: (relay.ref(0.0), -1.0), lambda: (relay.ref(0.0), 1.0))
def failing(r, x):
    r.value = 7.0
    assert x > 0.0, "x is negative"
    r.value = 8.0
    return x


@case(lambda: (relay.ref(0), 5), lambda: (relay.ref(0), 11))
def failing_in_a_loop(r, n):
    xs = np.arange(10)
    for i in range(n):
        r.value += xs[i]
    return r.value


@case(lambda: (relay.ref(0), 40))
def counting(r, n: Tensor[Int, ()]) -> Tensor[Int, ()]:
    r.value += 1
    if n == 0:
        return 0
    return 1 + counting(r, n - 1)


@case(lambda: (relay.ref([]), 3), lambda: (relay.ref([1.0, 2.5]), 2), lambda: (relay.ref([1.0]), 0))
def appended(r: Ref[list[float]], n):
    xs = r.value
    for i in range(n):
        xs.append(float(i))
    r.value = xs
    return len(xs)


@case(lambda: ([], 2.0), lambda: ([1.0, 2.0], 2.0), lambda: ([1, 2, 3], 1.0))
def summed(xs: list[float], x: float):
    total = x
    for y in xs:
        total += y * x
    xs.append(total)
    return total, xs


@case(lambda: ([[1.0], [], [2.0, 3.0]],))
def lists_of_lists(xs: list[list[float]]):
    total = 0.0
    for inner in xs:
        inner.append(1.0)
        for x in inner:
            total += x
    return total, xs


@case(lambda: ([relay.ref(1.0), relay.ref(2.0)],), lambda: ([*same_twice(), relay.ref(3.0)],))
def cells_in_a_list(xs: list[Ref[float]]):
    for cell in xs:
        cell.value += 1.0
    return xs


@case(lambda: (relay.ref(np.ones(3, np.float32)), 2))
def of_any_size(r: Ref[Tensor[Float, (relay.Any,)]], n):
    for _ in range(n):
        r.value = np.concatenate([r.value, r.value * 2.0])
    return r.value.sum()


@case(lambda: ([np.ones(3, np.float32), np.arange(5, dtype=np.float32)],))
def rows_of_any_size(xs: list[Tensor[Float, (relay.Any,)]]):
    total = 0.0
    for x in xs:
        total += x.sum()
    return total


@relay.data
class Chain:
    class End: ...

    class Link:
        value: float
        next: Ref[Chain]  # type: ignore[type-arg]


def chain(length: int) -> Chain:
    found = Chain.End()
    for i in range(length):
        found = Chain.Link(float(i), relay.ref(found))
    return found


def circle() -> Chain:
    back = relay.ref(Chain.End())
    whole = Chain.Link(1.0, relay.ref(Chain.Link(2.0, back)))
    back.value = whole
    return whole


@case(lambda: (chain(5), 9), lambda: (circle(), 9))
def followed(start: Chain, most: int):
    total, rounds, current = 0.0, 0, start
    going = True
    while going and rounds < most:
        match current:
            case Chain.End():
                going = False
            case Chain.Link(value, following):
                total += value
                current = following.value
        rounds += 1
    return total, rounds


@case(lambda: (chain(4),), lambda: (circle(),))
def cut(start: Chain):
    match start:
        case Chain.Link(_, following):
            following.value = Chain.End()
        case Chain.End():
            pass
    return start


@relay.data
class Counter:
    count: Ref[int]
    names: list[float]


@case(lambda: (Counter(relay.ref(1), [1.0, 2.0]),), lambda: (Counter(relay.ref(1), []),))
def counted(c: Counter):
    c.count.value += len(c.names)
    return c


@case(lambda: (relay.ref(2.0), 3.0))
def differentiated_inside(r, x):
    slope = relay.grad(lambda y: y * r.value)(x)
    r.value = slope
    return slope


@relay.relay
def powers(r, y, n):
    for _ in range(n):
        r.value = r.value * y + y
    return r.value


@relay.relay
def recursive_powers(r, y: F, n: Tensor[Int, ()]) -> F:
    if n == 0:
        return r.value
    r.value = r.value * y
    return recursive_powers(r, y, n - 1) + y


@relay.relay
def summed_rows(rows, steps, y):
    """References of several types, in a record and alone."""
    rows["r"].value = rows["r"].value * y
    steps.value += 1
    return rows["r"].value.sum() * y


@case(lambda: (2.0,))
def derivative_with_cells_around(x):
    r, s = relay.ref(x), relay.ref(1.0)

    def inner(y):
        r.value = s.value * y
        s.value = r.value * y + s.value
        return r.value * s.value

    return relay.grad(inner)(x), r.value, s.value


for program in (powers, recursive_powers):
    for derived in (relay.grad(program, wrt=1), relay.grad(relay.value_and_grad(program, wrt=1), output=1, wrt=1)):
        REGISTRY.append((derived, lambda: (relay.ref(2.0), 1.5, 4)))
REGISTRY.append((relay.grad(summed_rows, wrt=2), lambda: ({"r": relay.ref(np.ones(3))}, relay.ref(0), np.float64(2))))


# ---- tests


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize(
    ("function", "maker"), REGISTRY, ids=lambda value: getattr(value, "__name__", "").replace("<lambda>", "made")
)
def test_compiled_calls_leave_what_interpreted_calls_leave(
    function: RelayFunction, maker: Callable[[], tuple[Any, ...]], level: int
) -> None:
    compiled = RelayFunction(function.__relay__, attrs.evolve(function._options, opt_level=level))
    expected = outcome(function.interpret, maker())
    assert outcome(compiled, maker()) == expected
    assert outcome(compiled, maker()) == expected


def test_a_reference_comes_back_as_itself() -> None:
    for run in modes(chosen):
        a, b = relay.ref(1.0), relay.ref(2.0)
        assert run(a, b, True)[0] is a and run(a, b, False)[1] is a
    for run in modes(cut):
        start = chain(3)
        assert run(start).next is start.next


def test_what_is_not_written_stays_the_same_object() -> None:
    for run in modes(only_read):
        array = np.ones(3)
        cell = relay.ref(array)
        run(cell, 1)
        assert cell.value is array


def test_contents_do_not_share_memory_with_arguments() -> None:
    @relay.relay
    def kept(r, x):
        r.value = x

    for run in modes(kept):
        x, cell = np.ones(3), relay.ref(np.zeros(3))
        run(cell, x)
        x[:] = 5.0
        np.testing.assert_array_equal(cell.value, np.ones(3))


def test_a_list_of_any_length_takes_one_program() -> None:
    for length in range(1, 8):
        summed([1.0] * length, 2.0)
    assert len({id(lowered) for lowered in summed._programs.exact.values()}) <= 3  # empty, floats, integers


def test_deep_recursion_starts_again_with_the_first_contents() -> None:
    cell = relay.ref(0)
    assert int(counting(cell, 200_000)) == 200_000
    assert int(cell.value) == 200_001


def test_references_make_long_chains() -> None:
    assert_modes_agree(followed, chain(3000), 5000, expected=(3000 * 2999 / 2, 3001), rtol=0, atol=0)


def test_an_executable_takes_references() -> None:
    compiled = bumped.compile(relay.ref(np.zeros(2, np.float32)))
    cell = relay.ref(np.ones(2, np.float32))
    compiled(cell)
    np.testing.assert_array_equal(cell.value, [2.0, 2.0])
    with pytest.raises(TypeMismatch, match=r"argument r must be Tensor\[float32, \(2,\)\], found float64 \(2,\)"):
        compiled(relay.ref(np.ones(2)))
    with pytest.raises(TypeMismatch, match="argument r must be Ref"):
        compiled(np.ones(2, np.float32))


def test_wrong_contents_are_errors() -> None:
    with pytest.raises(TypeMismatch, match=r"argument r\.value of bumped is a Python object"):
        bumped(relay.ref(object()))
    with pytest.raises(TypeMismatch, match=r"argument r\.value of bumped is 'text', but a reference may contain"):
        bumped(relay.ref("text"))


def test_one_reference_has_one_type() -> None:
    @relay.relay
    def mixed(a, b, x, y):
        a.value = x
        b.value = y

    cell = relay.ref(1.0)
    assert_modes_raise(
        mixed, cell, cell, np.float32(1), np.float64(1), error=TypeMismatch, match="one reference is passed as Ref"
    )


def test_references_in_many_threads() -> None:
    cells = [relay.ref(0) for _ in range(8)]

    def work(cell: Any) -> None:
        for _ in range(50):
            counting(cell, 3)

    threads = [threading.Thread(target=work, args=(cell,)) for cell in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(cell.value) for cell in cells] == [200] * 8


def test_calls_like_earlier_ones_describe_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay.relay
    def stepped(state, cell, rate, x):
        w, count = state.value
        assert count < 100, "too many"
        state.value = w - rate * x, count + 1
        cell.value = (w * x).sum()
        return w

    def arguments() -> tuple[Any, ...]:
        return relay.ref((np.zeros(2000, np.float32), np.int32(1))), relay.ref(1.0)

    x = np.ones(2000, np.float32)
    state, cell = arguments()
    for _ in range(2):
        stepped(state, cell, 0.5, x)
    stepped(*arguments()[:1], cell, 0.5, x)
    with monkeypatch.context() as patched:
        patched.setattr("relay.api.function.describe", None)
        assert float(stepped(state, cell, 0.5, x)[0]) == -1.0
        state.value = (state.value[0].numpy(), np.asarray(state.value[1]))
        before = cell.value
        stepped(state, cell, 0.5, x)
        assert cell.value is not before
        state.value = (state.value[0], np.int32(100))
        before = state.value
        with pytest.raises(ExecutionError, match="too many"):
            stepped(state, cell, 0.5, x)
        assert state.value is before
    state.value = (np.zeros(3, np.float32), np.int32(1))  # of another size: another program
    assert stepped(state, cell, 0.5, x[:3]).shape == (3,)
    other = relay.ref(np.float32(0))
    assert stepped(relay.ref((x, np.int32(0))), other, 0.5, x).shape == (2000,)
    assert float(other.value) == 2000.0


def test_contents_of_another_byte_order() -> None:
    for run in (bumped, bumped.interpret, bumped.compile(relay.ref(np.ones(2)))):
        cell = relay.ref(np.ones(2, ">f8"))
        run(cell)
        assert cell.value.dtype == np.float64 and cell.value.tolist() == [2.0, 2.0]
