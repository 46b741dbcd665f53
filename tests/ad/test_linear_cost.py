"""Nothing is quadratic: the interpreter's steps, and the bytes that it writes, in derivatives of ever longer loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import List
from relay.eval.interpreter import Machine
from relay.eval.sizes import sizes_of
from relay.eval.values import Closure


def work(function: Any, *arguments: Any, tape: bool = False) -> tuple[int, int]:
    """The interpreter's steps through the transformed program, or of its own tape through the typed one, and the bytes
    of the arrays that operators made."""
    lowered = function.lower(*arguments)
    values = lowered.values
    module = function.typed(*arguments) if tape else lowered.core
    machine = Machine(sizes=sizes_of(module, module.main, values))
    made, prepared = 0, machine.operations.prepared_call

    def counting(call: Any, type_: Any) -> Any:
        function = prepared(call, type_)

        def counted(*operands: Any) -> Any:
            nonlocal made
            result = function(*operands)
            made += result.nbytes
            return result

        return counted

    machine.operations.prepared_call = counting  # type: ignore[method-assign]
    machine.enter(Closure(module.main, {}, module), values)
    count = 0
    while machine.frames:
        machine.step()
        count += 1
    return count, made


def numbers(n: int) -> tuple[Any, ...]:
    return (np.linspace(0.1, 1.0, n),)


def a_list(n: int) -> tuple[Any, ...]:
    xs = List.Nil()
    for value in np.linspace(0.1, 1.0, n):
        xs = List.Cons(np.float64(value), xs)
    return (xs,)


@relay
def indexed_reads(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + x[i] * x[3]
    return s


@relay
def read_in_a_while(x):
    s, i = 0.0, 0
    while i < x.shape[0]:
        s = s * 0.5 + x[i] * x[i]
        i = i + 1
    return s


@relay
def fields(w):
    s = 0.0
    for i in range(w["table"].shape[0]):
        s = s * w["scale"] + w["table"][i]
    return s


@relay
def items(p):
    s = 0.0
    for i in range(p[0].shape[0]):
        s = s * p[1] + p[0][i] * p[0][0]
    return s


@relay
def a_growing_list(x):
    xs = [x[0]]
    for i in range(x.shape[0]):
        xs.append(xs[i] * 0.5 + x[i])
    s = 0.0
    for v in xs:
        s = s * 0.5 + v
    return s


@relay
def updates(x):
    y = x * 1.0
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * 0.5 + x[i] * y[i]
    return relay.sum(y)


@relay
def updates_in_a_reference(x):
    r = relay.ref(x * 1.0)
    for i in range(1, x.shape[0]):
        y = r.value
        y[i] = y[i - 1] * 0.5
        r.value = y
    return relay.sum(r.value)


@relay
def rows_of_a_table(table, ids):
    s = relay.zeros((4,), dtype="float64")
    for i in range(ids.shape[0]):
        s = relay.tanh(s + table[ids[i]])
    return relay.sum(s)


@relay
def slices(x):
    s = 0.1
    for i in range(x.shape[0]):
        s = relay.sum(x[2:4] * s) + x[i] if s < 1.0 else s * 0.5 + x[i]
    return s


@relay
def left_early(x):
    s = 0.0
    for i in range(x.shape[0]):
        if s > 100.0:
            break
        if x[i] > 0.5:
            s = s * 0.5 + x[i] * x[i]
            continue
        s = s * 0.7 + relay.sin(x[i])
    return s


@relay
def folded(xs):
    return xs.fold(lambda total, v: total * 0.5 + v * v, 0.0)


@relay
def mapped_and_looped(xs):
    s = 0.0
    for v in xs.map(lambda v: v * v):
        s = s * 0.5 + v
    return s


@relay
def of_an_inner_loop(x):
    s = 0.0
    for i in range(x.shape[0]):
        y = x
        for j in range(2):
            s = s * 0.5 + y[i] * y[j]
    return s


@relay
def chosen_by_a_condition(x):
    y = x * 2.0
    s = 0.0
    for i in range(x.shape[0]):
        z = x if i % 2 == 0 else y
        s = s * 0.5 + z[i] * z[0]
    return s


@relay
def chosen_among_three(x):
    a, b, c = x, x * 2.0, relay.sin(x)
    s = 0.0
    for i in range(x.shape[0]):
        if i % 3 == 0:
            z = a
        elif s > 1.0:
            z = b
        else:
            z = c
        w = z if s < 0.5 else a
        s = s * 0.5 + w[i] * relay.sum(z[1:3])
    return s


@relay
def chosen_by_a_function(x):
    y = x * 2.0

    def pick(k):
        return x if k % 2 == 0 else y

    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + pick(i)[i]
    return s


@relay
def chosen_records(w):
    other = {"table": w["table"] * 2.0, "scale": w["scale"] + 1.0}
    s = 0.0
    for i in range(w["table"].shape[0]):
        p = w if i % 2 == 0 else other
        s = s * p["scale"] + p["table"][i]
    return s


@relay
def chosen_rows(x):
    m = relay.reshape(x, (x.shape[0] // 4, 4))
    n = m * 2.0
    s = 0.0
    for i in range(x.shape[0] // 4):
        z = m if i % 2 == 0 else n
        s = s * 0.5 + relay.sum(z[i] * s) + 0.1
    return s


@relay
def a_list_of_arrays(x):
    arrays = [x, x * 2.0, relay.sin(x)]
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + arrays[i % 3][i] * arrays[2][i]
    return s


@relay
def elements_of_a_table(x):
    m = relay.stack((x, x * 2.0, x * x))
    s = 0.0
    for i in range(x.shape[0]):
        k = 0 if s < 0.5 else 2
        row = m[k]
        s = s * 0.5 + row[i] * row[-i]
    return s


@relay
def chosen_references(x):
    a, b = relay.ref(x), relay.ref(x * 2.0)
    s = 0.0
    for i in range(x.shape[0]):
        r = a if i % 2 == 0 else b
        s = s * 0.5 + r.value[i]
    return s


@relay
def replaced_once(x):
    y = x * 1.0
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + y[i]
        if i == 3:
            y = y * 2.0
    return s


def fields_of(n: int) -> tuple[Any, ...]:
    return ({"table": np.linspace(0.1, 1.0, n), "scale": np.float64(0.5)},)


CASES: list[tuple[Any, Callable[[int], tuple[Any, ...]]]] = [
    (indexed_reads, numbers),
    (read_in_a_while, numbers),
    (fields, fields_of),
    (items, lambda n: ((np.linspace(0.1, 1.0, n), np.float64(0.5)),)),
    (a_growing_list, numbers),
    (updates, numbers),
    (updates_in_a_reference, numbers),
    (rows_of_a_table, lambda n: (np.ones((n, 4)) * 0.1, np.arange(n, dtype=np.int32)[::-1].copy())),
    (slices, numbers),
    (left_early, numbers),
    (folded, a_list),
    (mapped_and_looped, a_list),
    (of_an_inner_loop, numbers),
    (chosen_by_a_condition, numbers),
    (chosen_among_three, numbers),
    (chosen_by_a_function, numbers),
    (chosen_records, fields_of),
    (chosen_rows, numbers),
    (a_list_of_arrays, numbers),
    (elements_of_a_table, numbers),
    (chosen_references, numbers),
    (replaced_once, numbers),
]


@pytest.mark.parametrize(("function", "given"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_steps_and_bytes_are_in_proportion_to_the_length(
    function: Any, given: Callable[[int], tuple[Any, ...]]
) -> None:
    derivative = relay.value_and_grad(function, wrt=0)
    work(derivative, *given(20))  # the program for one size; those of the others are for all sizes
    short, long, longer = (work(derivative, *given(n)) for n in (40, 80, 160))
    for kind in (0, 1):
        first, second = long[kind] - short[kind], longer[kind] - long[kind]
        assert second <= 2.2 * first


READS = [
    case
    for case in CASES
    if case[0] in (indexed_reads, read_in_a_while, fields, items, rows_of_a_table, slices, folded)
]


@pytest.mark.parametrize(("function", "given"), READS, ids=lambda c: getattr(c, "__name__", ""))
def test_so_are_those_of_the_interpreters_tape(function: Any, given: Callable[[int], tuple[Any, ...]]) -> None:
    derivative = relay.value_and_grad(function, wrt=0)
    short, long, longer = (work(derivative, *given(n), tape=True) for n in (40, 80, 160))
    for kind in (0, 1):
        first, second = long[kind] - short[kind], longer[kind] - long[kind]
        assert second <= 2.2 * first


@pytest.mark.parametrize(("function", "given"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_gradients_are_right(function: Any, given: Callable[[int], tuple[Any, ...]]) -> None:
    assert relay.check_gradient(function, *given(8)) < 1e-6


def test_what_others_see_is_not_changed() -> None:
    @relay
    def versions(x):
        kept = []
        for i in range(3):
            kept.append(x.copy())
            x[i] = x[i] * 10.0
        y = x.copy()
        x[0] = 7.0
        return kept[0][0] + kept[1][0] + kept[2][1], y, x

    x = np.ones(3)
    assert_modes_agree(
        versions,
        x,
        expected=(1.0 + 10.0 + 10.0, np.array([10.0, 10.0, 10.0]), np.array([7.0, 10.0, 10.0])),
        rtol=0,
        atol=0,
    )
    np.testing.assert_array_equal(x, np.ones(3))
