"""Dicts and sets whose keys are known at run time only mean what Python's own mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay.errors import RelayError

pytestmark = pytest.mark.usefixtures("low_effort")

XS = np.array([3, 1, 3, 2, 1, 3])


def in_python(value: Any) -> Any:
    """A result without arrays."""
    if isinstance(value, dict):
        return {key: in_python(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(in_python, value))
    return value if isinstance(value, set | str) else np.asarray(value).tolist()


def same_as_python(function: Callable[..., Any], *arguments: Any) -> None:
    """A program gives what Python makes of its text, dicts in the same order."""
    plain = [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]
    expected = in_python(function(*plain))
    found = in_python(relay.relay(function).interpret(*arguments))
    assert found == expected
    assert _orders(found) == _orders(expected)


def _orders(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [*([list(value)] if isinstance(value, dict) else []), *(_orders(part) for part in parts)]


def counting(xs):
    counts, groups = {}, {}
    for i in range(len(xs)):
        x = xs[i]
        counts[x] = counts.get(x, 0) + 1
        if x not in groups:
            groups[x] = []
        groups[x].append(i)
        if i > 3 and x in counts:
            counts[x] += 10
    largest = max(counts.values()), max(counts, key=lambda k: counts[k]), sorted(counts), sum(counts.values())
    looped = [k * v for k, v in counts.items()], [k + 0 for k in counts], list(counts.keys()), len(groups)
    return counts, groups, largest, looped, counts == {}, counts == counts


def changing(xs):
    d = {x: x + 0.5 for x in xs}
    e = dict(zip(xs, xs))  # noqa: B905
    e.update({7: 8})
    first = d.pop(xs[0])
    missing = d.pop(1000, -1.0)
    del d[xs[1]]
    last = e.popitem()
    found = e.setdefault(50, 9), e.setdefault(50, 10)
    e.setdefault(xs[0] + 1, 5)
    f = {**e, 60: 1} | {61: 2}
    f |= {62: 3}
    g = f.copy()
    g.clear()
    return d, e, first, missing, last, found, f, g, len(g), [(i, k) for i, k in enumerate(f)], [*f]


def keys_of_all_kinds(n, text):
    grid, words, flags = {}, {}, {}
    for i in range(n):
        for j in range(n):
            grid[i, j] = i * j
        flags[i % 2 == 0] = i
    for word in text.split():
        words[word] = words.get(word, 0) + 1
    total = 0
    for (i, j), value in grid.items():
        total += i * 10 + j + value
    pairs = {(w, len(w)): c for w, c in words.items()}
    return total, grid[(1, 2)], (1, 2) in grid, (9, 9) in grid, words, flags, pairs, "bc" in words


def defaults(xs):
    counts, groups, (members,) = defaultdict(int), defaultdict(list), (defaultdict(set),)
    sums, nested = defaultdict(float), defaultdict(lambda: defaultdict(int))
    for i, x in enumerate(xs):
        counts[x + 0] += 1
        groups[x % 3].append(i)
        members[x % 3].add(x)
        sums[x // 2] += 0.5
        nested[x % 2][x + 1] += x
    total = 0
    for k in range(5):
        for v in groups[k]:
            total += v * k
    chosen = Counter(xs)
    more = Counter()
    for x in xs:
        more[x] += 2
    more.update(xs[:2])
    tops = chosen.most_common(2), chosen.most_common(), chosen[1000], chosen.total(), 1000 in chosen
    return counts, groups, members, sums, nested, total, chosen, more, tops, [counts[x] for x in xs]


def sets(xs, n):
    seen, start = set(), {0}
    for x in xs:
        seen.add(x % 5)
        start.add(x * 7)
    s, t, u = set(xs), {x * 2 for x in xs}, {n, n + 1}
    start.update(xs)
    start.discard(77)
    start.discard(0)
    start.remove(xs[0])
    start |= {9, 10}
    operators = s | t, s & t, s - t, s ^ t, s | {100}, {100} | s, s & {1, 3}, {1, 2} - s, s.union([1], [8])
    relations = seen <= s, s < s, s == {3, 1, 2}, s != {3, 1}, s.issubset(s), s.isdisjoint({1000}), t >= {2}
    return seen, start, len(seen), operators, relations, n in u, sorted(s), max(s), sum(s), bool(s)


def graphs(edges, n):
    graph, seen, order, memo = defaultdict(list), set(), [], {}
    for a, b in edges:
        graph[a].append(b)

    def visit(u):
        seen.add(u)
        order.append(u)
        for v in graph[u]:
            if v not in seen:
                visit(v)

    def fib(k):
        if k in memo:
            return memo[k]
        result = k if k < 2 else fib(k - 1) + fib(k - 2)
        memo[k] = result
        return result

    visit(n)
    composite = set()
    for i in range(2, 12):
        if i not in composite:
            for j in range(i * i, 40, i):
                composite.add(j)
    return order, fib(20), len(memo), [k for k in range(2, 40) if k not in composite]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (counting, (XS,)),
        (changing, (np.array([5, 6, 7, 8]),)),
        (keys_of_all_kinds, (4, "a bc a d bc a")),
        (defaults, (XS,)),
        (sets, (XS, 3)),
        (graphs, (np.array([(1, 2), (1, 3), (2, 4), (4, 1)]), 1)),
    ],
)
def test_they_mean_what_they_mean_in_python(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    same_as_python(function, *arguments)


def test_all_modes_agree() -> None:
    def f(xs, w):
        totals, seen = {}, set()
        for i in range(len(xs)):
            totals[xs[i]] = totals.get(xs[i], 0.0) + w[i]
            seen.add((xs[i] % 2, f"{xs[i]}"))
        taken = totals.pop(1)
        return totals, taken, (1, "2") in seen, seen

    found = in_python(assert_modes_agree(relay.relay(f), XS, np.arange(6.0)))
    assert found == ({3: 7.0, 2: 3.0}, 5.0, False, {(0, "2"), (1, "1"), (1, "3")})


def test_tables_grow_and_keys_collide() -> None:
    def f(xs, step):
        d, s = {}, set()
        for x in xs:
            d[x * step] = d.get(x * step, 0) + x
            s.add(x * step)
        return d, s

    numbers = np.random.default_rng(3).integers(-500, 500, 700)
    program = relay.relay(f)
    for step in (1, 1 << 20, 1 << 40):
        assert in_python(program(numbers, np.int64(step))) == f(numbers.tolist(), step)


def test_static_keys_stay_static() -> None:
    @relay.relay
    def f(x):
        layers = {}
        for i in range(3):
            layers[f"w{i}"] = np.ones(i + 1) * x  # of other shapes
        options = dict([("a", x), ("b", np.ones(2))])  # noqa: C406
        skipped = {"b", "c"}
        return layers, options, [name for name in ("a", "b") if name not in skipped]

    layers, options, names = assert_modes_agree(f, 2.0)
    assert [value.shape for value in layers.values()] == [(1,), (2,), (3,)]
    assert list(options) == ["a", "b"]
    assert names == ["a"]


def test_gradients_go_through_the_values() -> None:
    @relay.relay
    def loss(w, places):
        totals = {}
        for i in range(len(places)):
            totals[places[i]] = totals.get(places[i], 0.0) + w[i] * w[i]
        result = 0.0
        for key, total in totals.items():
            result = result + total * total * key
        return result

    w, places = np.arange(1.0, 5.0), np.array([1, 2, 1, 3])
    expected = [4 * 1 * 10.0, 4 * 2 * 2 * 4.0, 4 * 3 * 10.0, 4 * 4 * 3 * 16.0]
    np.testing.assert_allclose(relay.grad(loss, wrt="w")(w, places), expected)
    np.testing.assert_allclose(relay.grad(loss, wrt="w").interpret(w, places), expected)
    rows = relay.vmap(loss)(np.stack([w, w + 1]), np.stack([places, places[::-1]]))
    np.testing.assert_allclose(rows, [loss(w, places), loss(w + 1, places[::-1])])


def test_a_dict_is_changed_in_place() -> None:
    @relay.relay
    def f(xs):
        d, s = {}, set()
        for x in xs:
            if x in d and x + 1 not in s:
                d[x] += 1
            else:
                d[x] = d.get(x + 1, 0)
            s.add(x)
        return len(d), len(s)

    numbers = np.arange(60_000) % 50_000  # copies for each key would take gigabytes
    assert [int(n) for n in f(numbers)] == [50_000, 50_000]


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("d = {}\n    d[n] = 1\n    return d[n + 1]", "the key is not in the dict", ""),
        ("s = {n}\n    s.remove(n + 1)\n    return len(s)", "the element is not in the set", ""),
        ("s = {n}\n    return [x for x in s]", "a set has no order", "sorted(s)"),
        ("s = {n}\n    return s.pop()", "which element `pop` takes", "min(s)"),
        ("d = {}\n    d[n * 0.5] = 1\n    return d", "integers, booleans, strings and tuples of these", "int("),
        ("c = Counter()\n    c.update({})\n    return c", "updated by elements", "c[k] += n"),
        ("n.add(1)\n    return n", "only a set has `add`", "s = set()"),
        (
            "d = {}\n    d[n] = 1\n    d['a'] = 2\n    return d",
            "a run-time key must be",
            "the keys of a dict, or elements of a set, must have the same type",
        ),
    ],
)
def test_what_is_said(text: str, message: str, help: str) -> None:
    f = relay.from_source(f"def f(n):\n    {text}\n", {"Counter": Counter})
    for run in (f, f.interpret):
        with pytest.raises(RelayError) as raised:
            run(np.int32(3))
        assert message in str(raised.value)
        assert help in str(raised.value)


def test_where_a_dict_has_no_default() -> None:
    @relay.relay
    def comprehension(n):
        d = defaultdict(int)
        d[n] = 1
        return [d[k] for k in range(2)]

    def item(d, k):
        return d[k]

    @relay.relay
    def elsewhere(n):
        d = defaultdict(int)
        d[n] += 1
        return item(d, n + 1)

    @relay.relay
    def copied(d, n):
        e = dict(d)
        e[n] = 2.0
        return e

    for program in (comprehension, elsewhere):
        with pytest.raises(RelayError, match="the key is not in the dict"):
            program.interpret(np.int32(0))
    found = copied.interpret({1: 0.5}, np.int32(7))
    assert in_python(found) == {1: 0.5, 7: 2.0}
    with pytest.raises(RelayError, match="the key of a dict must be known at compile time"):
        relay.from_source("def f(d, n):\n    d[n] = 2.0\n    return d\n", {}).interpret({1: 0.5}, np.int32(7))


def test_missing_keys_are_caught() -> None:
    @relay.relay
    def f(n, x):
        d = {}
        d[n] = 1
        try:
            return d[n + 1]
        except KeyError:
            pass
        try:
            return np.nanargmax(x)
        except ValueError:
            return -1

    for run in (f, f.interpret):
        assert int(run(np.int32(4), np.array([np.nan]))) == -1
        assert int(run(np.int32(4), np.array([np.nan, 2.0]))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "s = set()\n    t = (s, n)\n    s.add(n)\n    return len(t[0])",
        "d = {}\n    e = [d]\n    d.setdefault(n, 2)\n    return len(e[0])",
        "d = {}\n    row = d.setdefault(n, [])\n    row.append(n)\n    return len(d[n])",
    ],
)
def test_changes_under_several_names_are_refused(text: str) -> None:
    with pytest.raises(RelayError, match=r"in Python, `.` sees the change of"):
        relay.from_source(f"def f(n):\n    {text}\n", {}).interpret(np.int32(1))


def test_changes_under_two_names() -> None:
    text = "def f(n):\n    s = set()\n    t = s\n    s.add(n)\n    d = {}\n    e = d\n    e.setdefault(n, 2)\n"
    f = relay.from_source(f"{text}    return len(t), len(d)\n", {})
    for run in (f, f.interpret):
        assert list(map(int, run(np.int32(1)))) == [1, 1]
