"""Objects of plain Python classes that programs make: what Python gets, what is refused, and what errors say."""

from __future__ import annotations

import copy
import itertools
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import relay as rl
from relay import TypeCheckError, TypeMismatch, relay


class Counter:
    def __init__(self, value, step=1.0):
        self.value, self.step = value, step

    def tick(self, by=1.0):
        self.value += by * self.step
        return self.value

    def twice(self):
        return self.tick() + self.tick()

    def add(self, by):
        self.value += by
        return self


class Holder:
    def __init__(self, held=None):
        self.held = [] if held is None else [held]

    def push(self, x):
        self.held.append(x)

    def last(self):
        return self.held[-1]


class Slots:
    __slots__ = ("first", "second")

    def __init__(self, first):
        self.first = first
        self.second = 2.0 * first


class Shown:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"<{self.x}>"

    def __eq__(self, other):
        return abs(self.x - other.x) < 0.5


@dataclass
class Scaled:
    x: Any
    factor: float = 2.0
    product: Any = field(init=False)

    def __post_init__(self):
        self.product = self.factor * self.x


def both(function: Any, *arguments: Any) -> list[Any]:
    """The results of the interpreter and of compiled code."""
    decorated = rl.jit(function)
    return [decorated.interpret(*arguments), decorated(*arguments)]


def made(x):
    counter, slots = Counter(x, step=2.0), Slots(x)
    counter.tick()
    slots.second += counter.twice()
    counter.name = "late"
    return counter, slots


def test_python_gets_objects_of_the_class() -> None:
    for counter, slots in both(made, 1.0):
        assert type(counter) is Counter and type(slots) is Slots
        assert (float(counter.value), float(counter.step), counter.name) == (7.0, 2.0, "late")
        assert float(slots.first) == 1.0 and float(slots.second) == 14.0
        assert float(counter.tick()) == 9.0


def values_of_kinds(x):
    one, other = Shown(x), copy.copy(Shown(x + 0.25))
    other.x += 0.0
    pair = [one, Shown(x + 5.0)]
    scaled = Scaled(x, factor=3.0)
    again = type(one)(x) == one and one.__class__ is Shown
    return str(one), f"{other}", one == other, other in pair, pair == [other, one], scaled.product, again


def test_own_text_equality_and_post_init() -> None:
    for found in both(values_of_kinds, 1.0):
        assert found[:2] == ("<1.0>", "<1.25>")
        assert [bool(f) for f in found[2:5]] == [True, True, False]
        assert float(found[5]) == 3.0 and found[6]


ACCEPTED = (
    ("s = Counter(x); t = s; s.tick(); return s.value", 2.0),
    ("h = Holder(Counter(x)); h.held[0].tick(); return h.last().value", 2.0),
    ("k = Counter(x); helper(k); helper(k); return k.value", 3.0),
    ("k = Counter(x); n = 5.0; return sum([k.tick() * n for n in (1.0, 2.0) if n > 0.0]) + k.value + n", 16.0),
    ("k = Counter(x); ks, js = [k.tick() for _ in range(2)], [k.tick() for _ in range(3)]; return ks[1] + js[2]", 9.0),
    ("k = Counter(x).add(1.0).add(2.0); k.tick(); return k.value", 5.0),
    ("k = Counter(x)\ndef go():\n    k.tick()\ngo(); go(); return k.value", 3.0),
    ("k = Counter(x); n = 0\nwhile k.tick() < 5.0 and k.tick() < 9.0:\n    n += 1\nreturn n + k.value", 8.0),
    ("ks = [Counter(v) for v in np.arange(3.0)]\nfor i in range(3):\n    ks[i].tick(x)\nreturn ks[2].value", 3.0),
    ("b = Counter(x)\nfor v in np.arange(3.0):\n    if v > b.value:\n        b = Counter(v)\nreturn b.value", 2.0),
)  # fmt: skip


def test_changes_of_objects_are_those_of_python() -> None:
    for text, expected in ACCEPTED:
        f = _function(text)
        assert float(f.interpret(1.0)) == expected, text


REFUSED = (
    ("s = Counter(x); t = s; s.tick(); return t.value", "`t` sees the change of `s`"),
    ("k = Counter(x); h = Holder(k); k.tick(); return h.last().value", "`h` sees the change of `k`"),
    ("k = Counter(x); h = Holder(); h.push(k); h.held[0].tick(); return k.value", "`k` sees the change of `h`"),
    ("h = Holder(Counter(x)); t = h.last(); t.tick(); return h.last().value", "`h` sees the change of `t`"),
    ("xs = [x]; h = Holder(xs); xs.append(x); return len(h.last())", "`h` sees the change of `xs`"),
    ("h = Holder(); t = h.held; h.push(x); return len(t)", "`t` sees the change of `h`"),
    ("k = Counter(x); b = k.add(1.0); b.add(1.0); return k.value", "`k` sees the change of `b`"),
    ("k = Counter(x); ks = [k, k]; ks[0].tick(); return ks[1].value", "seen under another name, or in two places"),
    ("k = Counter(x); return any(k.tick() > 2.0 for _ in range(3))", "a call that changes `k` in a comprehension"),
    ("k = Counter(x); return k.value + sum(k.tick() for _ in range(3))", "a call that changes `k` in a comprehension"),
    ("GLOBAL.tick(); return x", "this changes the global `GLOBAL`"),
    ("helper(GLOBAL); return x", "this changes the global `GLOBAL`"),
    ("push(ITEMS, x); return x", "this changes the global `ITEMS`"),
    ("xs = [x]; f = push if x > 0.0 else put; f(xs, x); return sum(xs)", "`put` is not called by its name here"),
    ("xs = [x]; h = Holder(push); h.held[0](xs, x); return sum(xs)", "`push` is not called by its name here"),
    ("xs = [x]; push(*(xs, x)); return sum(xs)", "`push` is not called by its name here"),
    ("k = Counter(x)\ndef go(f):\n    f()\ngo(k.tick); return k.value", "`tick` is not called by its name here"),
    ("ks = [Counter(x)]; sorted(ks, key=Counter.tick); return ks[0].value", "`tick` is not called by its name here"),
    ("m = Moving(x); return len(m) + m.x", "`__len__` is not called by its name here"),
    ("m = Moving(x); return m + 1.0 + m.x", "the change of `m` is seen under another name"),
    ("xs = [x]; h = Kept(xs); return len(h.xs)", "`h` sees the change of `xs`"),
    ("xs = [x]; Kept.of(xs); return len(xs)", "the change of `xs` is seen under another name"),
    ("return Holder(x) == Holder(x)", "Holder has no __eq__"),
    ("k = Counter(x); return k.valeu", "Counter has no field 'valeu'"),
    ("return Counter(x, x, x).value", "wrong number of arguments to __init__: expected 1 to 2, found 3"),
    ("h = Holder(x); return h.push.held", "has no attribute 'held'"),
)  # fmt: skip

GLOBAL = Counter(1.0)


ITEMS = [1.0]


def helper(k):
    k.tick()


def push(items, x):
    items.append(x)


def put(items, x):
    items[0] = x


class Moving:
    def __init__(self, x):
        self.x = x

    def __len__(self):
        self.x += 1.0
        return 3

    def __add__(self, by):
        self.x += by
        return self.x


class Kept:
    def __init__(self, xs):
        self.xs = xs
        xs.append(1.0)

    @classmethod
    def of(cls, xs):
        xs.append(2.0)
        return len(xs)


def test_changes_that_python_as_the_caller_does_not_see_are_refused() -> None:
    def ticked(counter):
        helper(counter)
        return counter.value

    def returned(counter):
        helper(counter)
        return counter

    with pytest.raises(TypeCheckError, match="`counter` is a value of the caller's, which does not see this change"):
        rl.jit(ticked).interpret(Counter(1.0))
    assert float(rl.jit(returned).interpret(Counter(1.0)).value) == 2.0


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_differs_from_python_is_refused(text: str, message: str) -> None:
    with pytest.raises(rl.RelayError) as caught:
        _function(text).interpret(1.0)
    assert message in str(caught.value)


def _function(text: str) -> Any:
    return rl.from_source("def f(x):\n" + textwrap.indent(text, "    "), globals())


class Late:
    def __init__(self):
        self.total = 0.0

    def start(self):
        self.extra = 5.0

    def use(self):
        return self.total + self.extra


class Counted(itertools.count):
    pass


def test_objects_of_classes_that_are_written_in_c_are_no_structures() -> None:
    with pytest.raises(TypeMismatch, match="is a Python Counted, which Relay cannot take"):
        rl.jit(lambda counted: counted)(Counted())


def test_fields_that_other_methods_add() -> None:
    @relay
    def added(x):
        late = Late()
        late.start()
        return late.use() + x

    @relay
    def missing(x):
        return Late().use() + x

    assert added(1.0) == 6.0
    with pytest.raises(TypeCheckError, match="Late has no field 'extra'"):
        missing(1.0)


def test_gradients_and_batches() -> None:
    def run(x):
        counter = Counter(x * x, step=x)
        for _ in range(3):
            counter.tick()
        return counter.value

    xs = np.array([1.0, 2.0])
    np.testing.assert_allclose(rl.grad(run)(2.0), 7.0)
    np.testing.assert_allclose(rl.vmap(run)(xs), xs**2 + 3 * xs)


def test_identity_is_decided_by_classes_or_refused_with_what_to_write() -> None:
    @relay
    def differ(x):
        return 1.0 if Holder(x) is not Counter(x) else 0.0

    @relay
    def same(x):
        counter = Counter(x)
        return counter is counter

    @relay
    def shown(x):
        return Shown(x) is Shown(x)

    assert both(differ, 2.0) == [1.0, 1.0]
    with pytest.raises(TypeCheckError, match=r"compare a field that tells them apart"):
        same(2.0)
    with pytest.raises(TypeCheckError, match=r"write `==`"):
        shown(2.0)
