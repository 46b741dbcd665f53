"""Errors of operations, and their texts, that programs catch, as Python runs the same functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from programs.raised_errors import NUMBERS, AppError, parse
from support.agreement import assert_as_python

from relay import relay
from relay.ir.validation.check import check


def division(a, n):
    try:
        q = a // n
    except ZeroDivisionError:
        q = -1
    return q


def index(xs, i):
    try:
        v = xs[i]
    except IndexError:
        v = 0.0
    return v


def asserting(x):
    try:
        assert x > 0.0, "positive"
        y = 1.0 / x
    except AssertionError:
        y = 0.0
    return y


def text(x, n):
    try:
        y = parse(x, n)
        m = "fine"
    except AppError as e:
        y = 0.0
        m = str(e)
    return y, m


def text2(n):
    try:
        if n == 0:
            raise KeyError("zero")
        if n == 1:
            raise ValueError(f"one {n}")
        assert n < 5
    except (ValueError, KeyError) as error:
        return f"<{error}>"
    except Exception:
        return "other"
    return "ok"


def key1(n, k):
    d = {}
    for i in range(n):
        d[i * 2] = float(i)
    try:
        return d[k]
    except KeyError as e:
        print("missing", e)
        return -1.0


def toint(t):
    try:
        return int(t)
    except ValueError:
        return -1


def toint2(t):
    total = 0
    for w in t.split(" "):
        try:
            total += int(w)
        except ValueError:
            total += 100
    return total


def keyr(n):
    try:
        if n == 0:
            raise KeyError(n)
        if n == 1:
            raise KeyError(f"a{n}")
        raise KeyError("b")
    except LookupError as e:
        return str(e)


def popped(n):
    xs = [1.0, 2.0]
    s = 0.0
    for _ in range(n):
        try:
            s += xs.pop()
        except IndexError:
            s -= 1.0
    return s


def lindex(n):
    xs = [1, 2, 3]
    for i in range(n):
        xs.append(i)
    try:
        return xs[n + 5], xs.index(7)
    except IndexError:
        return -1, -2
    except ValueError:
        return -3, -4


def removing(n):
    xs = [1, 2, 3]
    try:
        xs.remove(n)
    except ValueError:
        return -1
    return len(xs)


@dataclass
class P:
    a: float
    b: int

    def check(self):
        if self.b < 0:
            raise ValueError("b")
        return self.a * self.b


def method(x, n):
    p = P(x, n)
    try:
        return p.check()
    except ValueError:
        return 0.0


def modz(a, b):
    try:
        return a % b, 1
    except ZeroDivisionError:
        return a, 0


def strict(x):
    try:
        return [1, 2, 3][x]
    except IndexError:
        return 0


def tup(x):
    try:
        return (x, 2.0)[3]
    except IndexError:
        return 7.0


def static_assert(x):
    try:
        assert x.ndim == 2, "matrix"
        y = x.sum()
    except AssertionError as e:
        print(e)
        y = 5.0
    return y


def missing(x):
    d = {"a": x}
    try:
        y = d["b"]
    except KeyError:
        y = 0.0
    return y


def unpack(xs):
    try:
        a, b = xs
    except ValueError:
        a, b = 1.0, 2.0
    return a + b


def always():
    raise NotImplementedError("later")


def uses_always(x):
    try:
        return always()
    except NotImplementedError:
        return x


PROGRAMS: Sequence[tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]] = (
    (division, [(7, 2), (7, 0)]),
    (modz, [(7, 2), (7, 0)]),
    (index, [(NUMBERS, 2), (NUMBERS, 7), (NUMBERS, -4), (NUMBERS, -5)]),
    (lindex, [(1,), (8,), (6,)]),
    (popped, [(4,)]),
    (removing, [(2,), (9,)]),
    (asserting, [(2.0,), (-1.0,)]),
    (method, [(2.0, 3), (2.0, -1)]),
    (text, [(2.0, 3), (2.0, -3), (2.0, 300)]),
    (text2, [(0,), (1,), (2,), (7,)]),
    (keyr, [(0,), (1,), (2,)]),
    (toint2, [("1 2 x 4",)]),
    (uses_always, [(1.0,)]),
    (key1, [(3, 2), (3, 7)]),
    (tup, [(2.0,)]),
    (missing, [(2.0,)]),
    (unpack, [((1.0, 2.0, 3.0),), ((1.0, 5.0),)]),
    (static_assert, [(NUMBERS,)]),
    (strict, [(1,), (5,)]),
)


@pytest.mark.parametrize(("program", "calls"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_operations_fail_as_in_python(program: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    function = relay(program)
    for arguments in calls:
        assert_as_python(function, program, arguments)
    check(function.typed(*calls[0]), "typed")
    check(function.core(*calls[0]), "structured")
