"""Generators, iterators and the functions of Python's library that make them, as users write them."""

from __future__ import annotations

import bisect
import enum
import functools
import heapq
import itertools
import math
import operator
from collections import OrderedDict, deque
from typing import TypedDict

import numpy as np
import pytest
from agreement import same

import relay as rl
from relay import relay
from relay.errors import FrontendError, TypeCheckError, TypeMismatch

pytestmark = pytest.mark.usefixtures("low_effort")

XS = [3.0, 1.0, 2.0]


# ---- generators and objects that are gone through


def powers(x, n):
    """1, x, x * x, .."""
    power = 1.0
    for _ in range(n):
        yield power
        power *= x


def below(x, limit):
    while True:
        if x > limit:
            return
        yield x
        x = x * 2.0


class Bag:
    def __init__(self, xs):
        self.xs = xs

    def __iter__(self):
        for x in self.xs:
            yield x * 2.0
        yield 1.0


class Plain(Bag):
    def __iter__(self):
        return iter(self.xs)


def nested(x, depth):
    if depth == 0:
        yield x
    else:
        yield from nested(x * 2.0, depth - 1)
        yield from nested(x + 1.0, depth - 1)


@relay
def generated(x, n):
    total = 0.0
    for power in powers(x, n):
        total += power
    return total, sum(powers(x, 3)), [p * 2.0 for p in below(x, 20.0)], list(nested(x, 2))


@relay
def gone_through(x):
    total = 0.0
    for v in Bag([x, 2.0 * x]):
        total += v
    plain = Plain([x, 2.0 * x])
    return total, sum(Bag([x])), max(plain), [v + 1.0 for v in plain], list(enumerate(plain)), 2.0 * x in plain


def test_generators_and_objects() -> None:
    same(generated, 3.0, 4)
    same(gone_through, 3.0)
    gradient = rl.grad(lambda x: generated(x, 4)[0])(3.0)
    np.testing.assert_allclose(gradient, 1.0 + 2.0 * 3.0 + 3.0 * 9.0)


def test_generators_without_end_or_with_output_are_refused() -> None:
    for body in ("    while True:\n        yield x\n", "    print(x)\n    yield x\n", "    y = yield x\n    yield y\n"):
        with pytest.raises(FrontendError, match="yield"):
            rl.from_source(f"def f(x):\n{body}")


@relay
def taken(xs):
    tokens = iter(xs)
    first = next(tokens)
    second, last = next(tokens, -1.0), 0.0
    for x in tokens:
        last = x
    return first - second, last, next(tokens, -5.0), next(iter(xs), 0.0), next((x for x in xs if x > 9.0), -1.0)


@relay
def endless(n):
    for i in itertools.count(1, 2):
        if i * i > n:
            break
    turns = 0.0
    for k, x in zip(itertools.count(), XS, strict=False):
        turns += k * x
    for x in itertools.cycle(XS):
        turns += x
        if turns > 20.0:
            return i, turns


def test_iterators() -> None:
    same(taken, XS)
    same(endless, 30)


# ---- itertools, functools, bisect and heapq


@relay
def of_itertools(xs):
    groups = [(k, sum(g)) for k, g in itertools.groupby([1, 1, 2, 3, 3], key=lambda v: v // 2)]
    return (
        list(itertools.accumulate(xs)),
        list(itertools.accumulate(xs, operator.mul, initial=2.0)),
        list(itertools.chain(xs, [4.0])) + list(itertools.chain.from_iterable([xs, xs])),
        list(itertools.combinations(range(4), 2)),
        list(itertools.combinations_with_replacement(xs, 2)),
        list(itertools.islice(itertools.count(3), 4)) + list(itertools.islice([5, 6, 7], 1, 3)),
        groups,
        [b - a for a, b in itertools.pairwise(xs)],
        list(itertools.permutations(range(3))),
        list(itertools.product([1, 2], [3, 4])) + list(itertools.product([0, 1], repeat=2)),
        list(itertools.starmap(lambda a, b: a * b, zip(xs, xs, strict=True))),
        list(itertools.takewhile(lambda v: v > 2.0, xs)) + list(itertools.dropwhile(lambda v: v > 2.0, xs)),
        list(itertools.zip_longest(xs, [1.0], fillvalue=0.0)),
        list(itertools.filterfalse(lambda v: v > 1.5, xs)) + list(itertools.repeat(1.0, 2)),
        list(itertools.compress(xs, [True, False, True])) + list(itertools.tee(xs)[1]),
    )


def weighted(a, b, x):
    return a * x + b


@relay
def of_functools(x):
    f, g = functools.partial(weighted, 2.0), functools.partial(weighted, 2.0, b=1.0)
    product = functools.reduce(lambda a, b: a * b, [x, 2.0, 4.0])
    return f(1.0, x), g(x=x), product, functools.reduce(operator.add, [x, 1.0], 5.0), functools.reduce(max, [1.0, x])


@relay
def of_sorted_lists(xs, v):
    kept = sorted(xs)
    bisect.insort(kept, v)
    heap = list(xs)
    heapq.heapify(heap)
    least = heapq.heappushpop(heap, 0.0)
    other = heapq.heapreplace(heap, 7.0)
    places = bisect.bisect(kept, v), bisect.bisect_left(kept, v), bisect.bisect_right(kept, 9.0)
    return kept, places, least, other, heapq.heappop(heap), heapq.nlargest(2, xs), heapq.nsmallest(2, xs)


WIDTH = 2


@relay
def of_deques(xs):
    window, means = deque(maxlen=WIDTH), []
    for x in xs:
        window.append(x)
        means.append(sum(window) / len(window))
    turned = deque([1, 2, 3])
    turned.rotate(1)
    turned.appendleft(9)
    return means, list(window), list(turned), turned.popleft(), turned.pop()


@relay
def of_queues_in_fields(xs):
    queue = Queue()
    for x in xs:
        queue.add(x)
    return queue.take() + 10.0 * queue.take(), queue.last()


class Queue:
    def __init__(self):
        self.heap, self.waiting = [], deque()
        self.waiting = deque()

    def add(self, x):
        heapq.heappush(self.heap, x)
        self.waiting.append(x)

    def take(self):
        return heapq.heappop(self.heap)

    def last(self):
        return self.waiting.popleft()


def test_functions_of_the_library() -> None:
    same(of_itertools, XS)
    same(of_functools, 3.0)
    same(of_sorted_lists, XS, 2.0)
    same(of_deques, XS)
    same(of_queues_in_fields, XS)
    np.testing.assert_allclose(rl.grad(lambda x: of_functools(x)[2])(3.0), 8.0)


def test_more_elements_than_an_array_of_numbers_gives() -> None:
    @relay
    def of_rows(x):
        pairs = list(itertools.combinations(x, 2))
        return sum((a - b) ** 2 for a, b in pairs), list(itertools.accumulate(x))[-1]

    total, last = of_rows(np.array(XS))
    assert total == 6.0 and last == 6.0
    np.testing.assert_allclose(rl.grad(lambda x: of_rows(x)[0])(np.array(XS)), [6.0, -6.0, 0.0])


# ---- math


@relay
def of_integers(n, k):
    return (
        math.comb(n, k), math.perm(n, k), math.perm(n), math.factorial(n), math.gcd(12, 18, n), math.lcm(n, k, 4),
        math.isqrt(n * n * 7), math.isqrt(n - n), math.comb(k, n), math.gcd(),
    )  # fmt: skip


@relay
def of_floats(x, y):
    return (
        math.hypot(x, y, 1.0), math.hypot(x), math.dist([x, y], [0.0, 1.0]), math.fsum([x, y, x]), math.fmod(x, y),
        math.modf(x), math.isclose(x, y), math.exp2(x),
    )  # fmt: skip


def test_functions_of_math() -> None:
    same(of_integers, 5, 3)
    same(of_floats, 2.5, -1.5)


# ---- enumerations


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 4


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


@relay
def of_members(n):
    total = 0
    for c in Color:
        total += c.value * n
    names = [c.name for c in Color]
    chosen = Color(2).value * Color["BLUE"].value
    return total, len(Color), names, chosen, Color(4) is Color.BLUE, [int(v) for v in Level], Level(3) == Level.HIGH


def test_enumerations() -> None:
    same(of_members, 3)
    with pytest.raises(TypeCheckError, match="7 is no value of Color") as caught:
        relay(lambda x: x * Color(7).value)(1.0)
    assert caught.value.help == "it has 1, 2, 4"
    with pytest.raises(TypeCheckError, match="Color has no member 'PINK'"):
        relay(lambda x: x * Color["PINK"].value)(1.0)


# ---- functions that keep their results, and calls that return what they are given


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@relay
def of_cached(a, b, n):
    @functools.cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        if a[i - 1] == b[j - 1]:
            return distance(i - 1, j - 1)
        return 1 + min(distance(i - 1, j), distance(i, j - 1), distance(i - 1, j - 1))

    return distance(len(a), len(b)), fibonacci(n)


def test_cached_functions_take_the_time_of_cached_ones() -> None:
    assert tuple(map(int, same(of_cached, "kitten on a mat", "sitting on a hat", 40))) == (4, 102334155)


class Stack:
    def __init__(self):
        self.xs = []

    def push(self, x):
        self.xs.append(x)
        return self

    def both(self, a, b):
        self.push(a).push(b)
        return self

    def top(self):
        return self.xs[-1]


def push(xs, x):
    xs.append(x)
    return xs


def fill(stack: Stack, x):
    stack.push(x).push(x)


@relay
def chained(x):
    stack = Stack()
    stack.push(x).push(2.0 * x).push(1.0)
    other = stack.push(4.0)
    top = other.both(x, 7.0).top()
    second = Stack().push(1.0).push(x)
    second.push(2.0)
    fill(second, 5.0 * x)
    xs = [x]
    push(push(xs, 1.0), 2.0)
    ys = push(xs, 3.0)
    return stack.xs, top, second.push(9.0).xs, xs, ys


def test_calls_that_return_what_they_are_given() -> None:
    same(chained, 3.0)
    np.testing.assert_allclose(rl.grad(lambda x: sum(chained(x)[2]))(3.0), 11.0)


@relay
def padded(x, width, names):
    widest = max(len(name) for name in names)
    lines = "|".join(f"{name:<{widest}}" for name in names)
    return (
        f"{x:>{width}.2f}|{int(x):0{width}d}|{'ab':^{width}}|{'x':*<{width}}|{x:{width}.1f}|{'a':{width}}|"
        + lines
        + "*" * int(x)
    )


def test_formats_of_computed_widths() -> None:
    same(padded, 3.14159, 10, ["a", "bcd"])
    assert relay(lambda x, n: f"{x:.{n}f}")(1.25, 1) == "1.2"
    with pytest.raises(TypeMismatch, match="this part of a format must be known"):
        relay(lambda x, n: f"{x:.{n}f}")(1.0, np.int32(2))


def test_mistyped_names_are_told_as_they_are_written() -> None:
    with pytest.raises(TypeCheckError, match=r"rl\.nn has no 'sofmax'"):
        relay(lambda x: rl.nn.sofmax(x))(np.ones(2))
    with pytest.raises(TypeCheckError, match="Stack has no method 'psuh'") as caught:
        relay(lambda x: Stack().psuh(x))(1.0)
    assert caught.value.help == "did you mean 'push'?"


# ---- numbers, dicts and rows


class Options(TypedDict):
    rate: float
    rounds: int


@relay
def of_options(x: float, n: int):
    options = Options(rate=x, rounds=n)
    kept = OrderedDict(a=x)
    kept["b"] = 2.0 * x
    return options["rate"] * options["rounds"], list(kept.values())


@relay
def of_rows(x):
    rows = [[v, 2.0 * v] for v in x if v > 1.0]
    found = [v for v in x if v > 1.0]
    return [sum(column) for column in zip(*rows, strict=False)], max(*found), min(*found)


@relay
def with_swapped_rows(a, i):
    for k in range(i + 1, 3):
        place = k - 1 + np.argmax(a[k - 1 :, 0])
        a[[k, place]] = a[[place, k]]
        a[:, [0, k]] = a[:, [k, 0]]
    return a


def test_numbers_dicts_and_rows() -> None:
    for n in (np.int64(3), 4, np.int64(5)):
        same(of_options, 2.0, n)
    with pytest.raises(TypeMismatch, match=r"must be Tensor\[int32"):
        of_options(2.0, np.int64(2**40))
    same(of_rows, np.array([3.0, 1.0, 2.0]))
    for a in (np.arange(9.0).reshape(3, 3), np.array([[1.0, 2.0, 3.0], [9.0, 1.0, 4.0], [4.0, 7.0, 2.0]])):
        expected = with_swapped_rows.__wrapped__(a.copy(), 0)
        np.testing.assert_array_equal(with_swapped_rows(a, 0), expected)
        np.testing.assert_array_equal(with_swapped_rows.interpret(a, 0), expected)


# ---- generators without end


def fibonacci_numbers():
    """0, 1, 1, 2, .."""
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def newton_steps(a, x):
    while True:
        x = (x + a / x) / 2.0
        yield x


@relay
def of_endless(a, limit):
    last, count, total = a, 0, 0
    for x in newton_steps(a, a):
        count += 1
        if count == 2:
            continue
        if abs(x - last) < 1e-3:
            break
        last = x
    for f in fibonacci_numbers():
        if f > limit:
            return last, count, total, [2.0 * x for x in itertools.islice(newton_steps(a, a), 3)]
        if f % 2 == 0:
            total += f


def test_loops_over_generators_without_end() -> None:
    same(of_endless, 2.0, 50)
    gradient = rl.grad(lambda a: of_endless(a, 5)[0])(2.0)
    np.testing.assert_allclose(gradient, 0.5 / np.sqrt(2.0), rtol=1e-2)


def test_elements_of_endless_generators_that_are_asked_for_elsewhere_are_refused() -> None:
    text = "def ones():\n    while True:\n        yield 1.0\n\ndef f(x):\n    return {}\n"
    for use in ("sum(ones())", "[list(itertools.islice(ones(), k)) for k in range(3)]"):
        with pytest.raises(FrontendError, match="yield"):
            rl.from_source(text.format(use), {"itertools": itertools})["f"](1.0)


def test_generator_expressions_are_unpacked() -> None:
    @relay
    def unpacked(x):
        a, b = (v * x for v in (2.0, 3.0))
        return a - b

    same(unpacked, 3.0)


@relay
def of_ranges(k, x):
    products = [a * 10 + b for a, b in itertools.product(range(k), range(2))]
    scaled = [a * b for a, b in itertools.product(range(k), [1.5 * x, 2.5])]
    squares = [a - b for a, b in itertools.product(range(k), repeat=2)]
    filled = [a + b for a, b in itertools.zip_longest(range(k), range(2), fillvalue=9)]
    joined = list(itertools.chain(range(k), range(2), *[range(i) for i in range(3)]))
    numbered = [i * v + b for (i, v), b in itertools.product(enumerate([x, 2.0]), range(k))]
    return products, scaled, squares, filled, joined, numbered, sum(itertools.chain.from_iterable([range(k), range(2)]))


def test_functions_of_itertools_take_ranges_of_any_length() -> None:
    for k in (3, 1):
        same(of_ranges, k, 2.0)
