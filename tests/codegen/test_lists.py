"""Dynamic lists: the same in every mode as in Python, whoever else sees them, and at a cost
that is counted: the elements that are copied, and the memory that is taken."""

# ruff: noqa: B007

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from agreement import assert_modes_agree
from generators import random_lists

import relay as rl
from relay import relay
from relay.codegen.lowering.context import BUDGET, COPIED
from relay.codegen.runtime.cpu import DataResult, Program
from relay.eval import values

# ---- right


def test_random_programs_mean_what_python_means() -> None:
    text = random_lists.program(range(3))
    python: dict[str, Any] = {}
    exec(text, python)
    program = rl.from_source(text)
    assert isinstance(program, dict)
    for n in (0, 1, 3, 6):
        expected = [float(v) for v in python["every"](n, 1.25)]
        assert_modes_agree(program["every"], n, np.float64(1.25), expected=expected, rtol=1e-12)


def test_gradients_of_a_random_program() -> None:
    program = rl.from_source(random_lists.program(range(104, 105)))
    assert isinstance(program, dict)
    gradient = rl.grad(program["f104"], wrt="x")
    for n in (0, 3, 6):
        x = np.float64(1.25)
        step = 1e-6
        ahead, behind = (float(program["f104"](n, np.float64(1.25 + h))) for h in (step, -step))
        np.testing.assert_allclose(float(gradient(n, x)), float(gradient.interpret(n, x)), rtol=1e-12)
        np.testing.assert_allclose(float(gradient(n, x)), (ahead - behind) / (2 * step), rtol=1e-6)


@relay
def aliases(xs: list[float], n):
    ys = xs.copy()
    xs.append(1.0)
    ys.append(2.0)
    zs = ys.copy()
    zs[0] = 3.0
    first = xs.pop()
    kept = [xs.copy(), ys.copy()]
    for i in range(n):
        xs.append(4.0)
        kept.append(xs.copy())
        xs[0] = float(i)
    second = kept[1][-1]
    pair = (xs.copy(), zs.copy())
    us, vs = pair
    vs.append(5.0)
    us[0] = 6.0
    return xs, ys, zs, first, second, len(kept[0]), kept[-1][0], kept[2][0], len(vs), us[0]


def test_lists_are_values() -> None:
    for n in (1, 3):
        found, expected = aliases([7.0, 8.0], n), aliases.interpret([7.0, 8.0], n)
        assert [np.asarray(f).tolist() for f in found] == [np.asarray(e).tolist() for e in expected]
    xs, ys, zs, first, second, length, last, early, others, own = aliases([7.0, 8.0], 2)
    assert [float(v) for v in xs] == [1.0, 8.0, 4.0, 4.0]
    assert ([float(v) for v in ys], [float(v) for v in zs]) == ([7.0, 8.0, 2.0], [3.0, 8.0, 2.0])
    assert (float(first), float(second), int(length), float(last), float(early)) == (1.0, 2.0, 2, 0.0, 7.0)
    assert (int(others), float(own)) == (4, 6.0)


def test_elements_that_are_lists_are_values() -> None:
    for n in (1, 10, 31, 32, 33):
        np.testing.assert_allclose(float(swapped(n)), float(swapped.interpret(n)), rtol=1e-6)


# ---- at a cost that is counted


@relay
def appended(n):
    xs = [0.0]
    for i in range(n):
        xs.append(float(i))
    return xs[-1]


@relay
def popped(n):
    xs = [0.0]
    for i in range(n):
        xs.append(1.0)
    s = 0.0
    while len(xs) > 0:
        s += xs.pop()
    return s


@relay
def assigned(n):
    prime = [True] * (n + 1)
    for i in range(2, n + 1):
        j = i * i
        while j <= n:
            prime[j] = False
            j += i
    return prime[n]


@relay
def push(heap: list[tuple[float, int]], item):
    heap.append(item)
    i = len(heap) - 1
    while i > 0:
        parent = (i - 1) // 2
        if heap[parent][0] <= heap[i][0]:
            break
        heap[parent], heap[i] = heap[i], heap[parent]
        i = parent
    return heap


@relay
def pop(heap):
    last = heap.pop()
    if len(heap) == 0:
        return last, heap
    top = heap[0]
    heap[0] = last
    i = 0
    while True:
        child = 2 * i + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1][0] < heap[child][0]:
            child += 1
        if heap[i][0] <= heap[child][0]:
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child
    return top, heap


@relay
def heaped(n):
    heap = [(0.0, 0)]
    for i in range(1, n):
        heap = push(heap, (float((i * 37) % 101), i))
    s = 0.0
    for i in range(n):
        (v, _), heap = pop(heap)
        s += v
    return s


@relay
def filled(xs: list[float], k):
    if k <= 0:
        return xs
    xs.append(float(k))
    xs[0] = xs[0] + 1.0
    return filled(filled(xs, k // 2), k - 1 - k // 2)


@relay
def by_recursion(n):
    xs = [0.0]
    for i in range(n):
        xs.append(1.0)
    return filled(xs, n)[0]


@relay
def alternating(n):
    xs, ys = [0.0], [1.0]
    for i in range(n):
        xs.append(2.0)
        ys.append(3.0)
        xs, ys = ys, xs
    return xs[-1] + ys[-1]


@relay
def buckets(n):
    table = [[0.0]]
    for i in range(3):
        table.append([1.0])
    for i in range(n):
        row = table[i % 4]
        row.append(float(i))
        table[i % 4] = row
    return table[3][-1]


@relay
def in_a_table(n):
    g = [[0.0] * 40 for _ in range(n % 3 + 6)]
    for k in range(n):
        i = k % 5 + 1
        for j in range(1, 4):
            g[i][j] = (g[i - 1][j] + g[i][j - 1] + 1.0) % 7.0
    return g[5][3] + g[1][1]


@relay
def swapped(n):
    g = [[float(i)] * 3 for i in range(n % 3 + 6)]
    for k in range(n):
        i, j = k % 5, (k * 2) % 5
        a, b = g[i].copy(), g[j].copy()
        a[1] = b[0] + 1.0
        b[0] = 9.0
        g[i], g[j] = b, a
        c, d = g[i].copy(), g[i].copy()
        c[0] = 2.0
        g[i] = c
        d[2] = 3.0
        v = g[j].copy()
        if k % 2 == 0:
            v[0] = v[0] * 0.5 + d[0]
            g[j] = v
    s = 0.0
    for row in g:
        for v in row:
            s = s * 0.5 + v
    return s


@relay
def in_a_queue(n):
    seen = [False] * n
    queue = [0]
    seen[0] = True
    head = 0
    while head < len(queue):
        v = queue[head]
        head += 1
        for w in (2 * v + 1, 2 * v + 2):
            if w < n and not seen[w]:
                seen[w] = True
                queue.append(w)
    return len(queue)


@relay
def gradient_of_a_stack(n):
    def f(x):
        xs = [x]
        for i in range(n):
            xs.append(xs[-1] * 1.001)
            xs[0] = xs[0] + xs[i // 2]
        s = 0.0
        while len(xs) > 0:
            s += xs.pop()
        return s

    return rl.grad(f)(np.float64(1.0))


@rl.data
class Log:
    class Open:
        entries: list[float]
        last: float

    class Closed:
        entries: list[float]


@relay
def logged(log: Log, x: float):
    match log:
        case Log.Open(entries, last):
            entries.append(last)
            return Log.Open(entries, last + 1.0) if last < x else Log.Closed(entries)
        case Log.Closed(entries):
            entries.append(x)
            return Log.Open(entries, 0.0)


@relay
def in_matched_data(n):
    def filled(k):
        return Log.Open([1.0], 0.0) if k == 0 else logged(filled(k - 1), 3.0)

    match filled(n):
        case Log.Open(entries, _):
            return sum(entries)
        case Log.Closed(entries):
            return sum(entries)


@relay
def in_a_reference_to_a_tuple(n):
    r, s = rl.ref(([1.0], [2.0])), rl.ref(([1.0], [2.0]))

    def go(i):
        if i > 0:
            chosen = r if i % 3 > 0 else s
            xs, ys = chosen.value[0].copy(), chosen.value[1].copy()
            xs.append(i * 1.0 + ys[-1])
            chosen.value = (xs, ys)
            s.value[1].append(0.5)
            return go(i - 1) + 1.0
        return 0.0

    return go(n) + sum(r.value[0]) + sum(s.value[1])


@relay
def in_a_tuple(n):
    pair = ([0.0], [1.0])
    for i in range(n):
        pair[0].append(i * 1.0)
        pair[1][-1] += 1.0
        pair[1].append(pair[0][-1])
    return sum(pair[0]) + sum(pair[1])


CASES = (
    *(appended, popped, assigned, heaped, by_recursion, alternating, buckets, in_a_table),
    *(in_a_queue, gradient_of_a_stack, in_matched_data, in_a_reference_to_a_tuple, in_a_tuple),
)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_each_operation_takes_constant_time(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements that are copied grow no faster than the lists."""
    np.testing.assert_allclose(float(function(40)), float(function.interpret(40)), rtol=1e-12)
    program = next(iter(function._programs.exact.values())).program
    copied = []
    for n in (1000, 2000, 4000, 8000):
        before = _table(program)[COPIED]
        function(n)
        copied.append(int(_table(program)[COPIED] - before))
    assert all(count <= 4 * n for count, n in zip(copied, (1000, 2000, 4000, 8000), strict=True)), copied
    interpreted: list[int] = []
    plain = values.copy_prefix
    monkeypatch.setattr(
        values, "copy_prefix", lambda buffer, length: interpreted.append(length) or plain(buffer, length)
    )
    counts = []
    for n in (40, 80):
        interpreted.clear()
        function.interpret(n)
        counts.append(sum(interpreted))
    if function is not by_recursion:  # its calls give their list twice: as the result, and as what they changed
        assert counts[1] <= 2.2 * counts[0] + 20, counts


def test_elements_of_lists_from_and_to_python_lie_side_by_side() -> None:
    """They have no references of their own, in arguments, results and references, unless they are references."""

    @relay
    def reversed_sums(xs: list[float], rows: list[list[float]], r: rl.Ref[list[float]]):
        found = []
        for i in range(len(xs)):
            found.append((xs[-1 - i], sum(rows[i % len(rows)])))
        rows[0].append(xs[0])
        xs[0] = 9.0
        r.value.append(len(rows[0]) * 1.0)
        return found, xs, rows

    def run(function: Any, n: int) -> tuple[Any, list[float]]:
        xs, held = [float(i) for i in range(n)], rl.ref([0.5] * n)
        result = function(xs, [[0.5] * 3, [], xs], held)
        assert xs == list(range(n))
        return result, [float(x) for x in held.value]

    for n in (1, 2, 40):
        found, expected = run(reversed_sums, n), run(reversed_sums.interpret, n)
        assert repr(found) == repr(expected)
    pools = {p for each in reversed_sums._programs.exact.values() for p in each.program.native.inputs}
    assert sorted(pool.cells for pool in pools) == [False] * (len(pools) - 1) + [True]  # the user's reference

    @relay
    def added(cells: list[rl.Ref[float]], x: float):
        cells[0].value += x
        return cells[-1].value

    shared = rl.ref(1.0)
    assert float(added([shared, shared], 2.0)) == float(shared.value) == 3.0


def _table(program: Any) -> np.ndarray:
    found: np.ndarray = program._contexts[-1].table
    return found


# ---- given back once


@relay
def searched(n):
    xs = [float(i) for i in range(n) if i % 3 > 0]
    k = 0
    while xs[k] * 2.0 < float(n):
        k += 1
    ys = [0.5]
    for i in range(n):
        ys.append(float(i))
    return float(k) + ys[-1]


@relay
def searched_within(n):
    xs = [float(i) for i in range(n) if i % 3 > 0]
    s = 0.0
    i = 0
    while i < 3:
        ws = [float(i), s]
        ws.append(1.0)
        j = 0
        while j < len(xs):
            if xs[j] > 4.0 + ws[0]:
                break
            s += xs[j] + ws[2]
            j += 1
        i += 1
    return s


@relay
def found(n):
    xs = [float(i) for i in range(n) if i % 3 > 0]
    best = [0.0]
    best.append(1.0)
    k = 0
    while k < n:
        if xs[k] > 4.0:
            best = xs
            break
        k += 1
    ys = [0.5]
    for i in range(n):
        ys.append(-1.0)
    return best[0] + 10.0 * best[1] + 100.0 * best[-1] + ys[-1]


@relay
def first_of(xs, n):
    ys = [x * 2.0 for x in xs if x < float(n)]
    for i in range(n):
        for j in range(n):
            if ys[j] > ys[i] + 3.0:
                return ys
    return xs


@relay
def returned(n):
    xs = [float(i) for i in range(n) if i % 3 > 0]
    zs = first_of(xs, n - n // 2)
    ys = [0.5]
    for i in range(n):
        ys.append(-1.0)
    return zs[0] + 10.0 * zs[1] + 100.0 * zs[-1] + ys[-1] + xs[1]


@relay
def ordered(n):
    xs = (0.5, float(n), 1.0)
    places = sorted(enumerate(xs), key=lambda p: p[1], reverse=True)
    best, _ = max(places, key=lambda p: p[1])
    return places[1][1] + 10.0 * float(best)


LEAVING = (searched, searched_within, found, returned, ordered)


@pytest.mark.parametrize("function", LEAVING, ids=lambda f: f.__name__)
def test_what_a_loop_reads_is_given_back_once(function: Any) -> None:
    """However the loop ends. A block that is given back twice has no size, and is noted behind the context table."""
    assert float(function(12)) == float(function.interpret(12))
    program = next(iter(function._programs.exact.values())).program
    end = program.native.table_size
    wider = Program(attrs.evolve(program.native, table_size=end + 128), DataResult)
    context = wider.take()
    context.table[end:] = -7
    wider.give(context)
    wider([np.int32(12)])
    assert (_table(wider)[end:] == -7).all()


# ---- in memory that is used again


@relay
def pushed_and_popped(n):
    xs = [0.0]
    s = 0.0
    for i in range(n):
        xs.append(1.0)
        xs.append(2.0)
        s += xs.pop() + xs.pop()
    return s


@relay
def reassigned(n):
    xs = [0.0] * 100
    for i in range(n):
        xs[i % 100] = float(i)
    return xs[0]


@relay
def windows(n):
    w = [0.0]
    s = 0.0
    for i in range(n):
        w = w + [1.0]  # noqa: RUF005
        if len(w) > 20:
            w = w[1:]
        s += w[-1]
    return s


@relay
def listed(n):
    total = 0.0
    for i in range(n):
        ys = [float(j) for j in range(i % 50)]
        total += sum(ys)
    return total


@relay
def replaced(n):
    xs = [0.0]
    for i in range(n):
        xs = [float(i)] * (1 + i % 7)
        xs.append(2.0)
    return xs[0]


@relay
def nested(n):
    t = 0.0
    for i in range(n):
        g = [[0.0]]
        for _ in range(i % 5):
            g.append([1.0, 2.0])
        row = g[0]
        row.append(3.0)
        g[0] = row
        t += g[0][-1] + g[len(g) - 1][0]
    return t


@relay
def paths(n):
    todo = [[0.0]]
    t = 0.0
    for i in range(n):
        path = todo.pop()
        path.append(float(i))
        t += path[-1]
        if len(path) > 10:
            path = [0.0]
        todo.append(path)
        todo.append([1.0])
        t += todo.pop()[0]
    return t


@relay
def chosen(n):
    x = np.linspace(-1.0, 1.0, 100)
    y = x[x > -0.5]
    z = y
    total = 0.0
    for i in range(n):
        y = y[y > -1.0] * 0.999
        if i % 3 == 0:
            z = y[y > 0.0]
        total += z.sum()
    return total + y.sum()


@relay
def chosen_until(n):
    x = np.linspace(-1.0, 1.0, 100)
    y = x[x > -0.5]
    k = 0
    while True:
        y = y[y > -1.0] * 0.999
        if y.sum() > 100.0 or k >= n:
            break
        k += 1
    return y.sum()


@relay
def consed(n):
    xs = rl.List.Nil()
    t = 0.0
    for i in range(n):
        xs = rl.List.Cons(1.0, rl.List.Cons(float(i), rl.List.Nil()))
        t += xs.fold(lambda a, b: a + b, 0.0)
    return t


MEMORY = (pushed_and_popped, reassigned, windows, listed, replaced, nested, paths, chosen, chosen_until, consed)


@pytest.mark.parametrize("function", MEMORY, ids=lambda f: f.__name__)
def test_memory_that_is_dead_is_used_again(function: Any) -> None:
    """A hundred times the rounds take no more memory."""
    np.testing.assert_allclose(float(function(200)), float(function.interpret(200)), rtol=1e-6)
    program = next(iter(function._programs.exact.values())).program
    left = int(_table(program)[BUDGET])
    function(20_000)
    assert int(_table(program)[BUDGET]) >= left - 100_000
