"""Errors that programs catch: `try`, `except`, `else`, `finally`, as Python runs the same functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from programs.raised_errors import NUMBERS, AppError, TooBig, TooSmall, parse
from support.agreement import assert_as_python, assert_modes_agree, assert_modes_raise

import relay as rl
from relay import grad, relay
from relay.ir.validation.check import check


def basic(x, n):
    try:
        y = parse(x, n)
    except ValueError:
        y = -1.0
    except TooBig:
        y = -2.0
    return y


def multi(x, n):
    try:
        y = parse(x, n)
    except (TypeError, AppError):
        return -1.0
    else:
        y = y + 1.0
    return y


def else_raises(x, n):
    try:
        try:
            y = parse(x, n)
        except TooSmall:
            y = 0.0
        else:
            if n == 5:
                raise TooSmall("in else")
            y = y + 1.0
    except AppError:
        y = -7.0
    return y


def reraise(x, n):
    try:
        try:
            y = parse(x, n)
        except TooSmall:
            raise
        except TooBig as e:
            raise ValueError("other") from e
    except TooSmall:
        y = 1.5
    except ValueError:
        y = 2.5
    return y


def loop_list(xs, n):
    good = []
    bad = 0
    for x in xs:
        try:
            good.append(parse(x, n + int(x)))
        except AppError:
            bad += 1
    total = 0.0
    for g in good:
        total += g
    return total, bad


def loop_break(xs, limit):
    total = 0.0
    for x in xs:
        try:
            if x > limit:
                raise ValueError("over")
            if x < 0.0:
                continue
            total += x
        except ValueError:
            break
    return total


def changed_before(x, n):
    a = 0.0
    b = 0
    try:
        a = 1.0
        b += 1
        y = parse(x, n)
        a = 2.0
        b += 1
    except AppError:
        y = 9.0
    return a, b, y


def fin_return(x, n):
    r = rl.ref(0.0)

    def inner(x, n):
        try:
            if n == 1:
                return x
            return parse(x, n)
        finally:
            r.value += 1.0

    a = inner(x, n)
    return a + r.value


def fin_loop(xs):
    count = 0
    for x in xs:
        try:
            if x < 0.0:
                continue
            if x > 10.0:
                break
        finally:
            count += 1
    return count


def fin_error(x, n):
    count = 0
    try:
        try:
            y = parse(x, n)
        finally:
            count += 1
    except AppError:
        y = 0.5
    return y, count


def rec(n):
    if n == 0:
        raise ValueError("bottom")
    return rec(n - 1) + 1


def rec_sum(n):
    if n < 0:
        raise ValueError("bottom")
    if n == 0:
        return 0
    return rec_sum(n - 1) + n


def recursion(n):
    try:
        return rec(n)
    except ValueError:
        return -n


def recursion2(n):
    try:
        return rec_sum(n)
    except ValueError:
        return -n


def lam(x, n):
    def f(v):
        return parse(v, n)

    def g(h, v):
        try:
            return h(v)
        except AppError:
            return v

    return g(f, x)


def chosen(x, n):
    def a(v):
        if v < 0.0:
            raise ValueError("neg")
        return v + 1.0

    def b(v):
        if v > 10.0:
            raise IndexError("big")
        return v * 2.0

    h = a if n > 0 else b
    try:
        return h(x)
    except ValueError:
        return 100.0
    except LookupError:
        return 200.0


def whiles(n):
    i = 0
    tries = 0
    while True:
        tries += 1
        try:
            if i < n:
                raise ValueError("again")
            break
        except ValueError:
            i += 1
    return i, tries


def nested_scope(x, n):
    try:
        for i in range(5):
            x = x + parse(1.0, n - i)
        z = x
    except AppError:
        z = x
    return z


def comp(xs, n):
    try:
        ys = [parse(x, n) for x in xs]
    except AppError:
        ys = [0.0 for x in xs]
    s = 0.0
    for y in ys:
        s += y
    return s


def in_handler(x, n):
    try:
        y = parse(x, n)
    except TooBig:
        try:
            y = parse(x, 200 - n)
        except TooSmall:
            y = -3.0
    except TooSmall:
        y = -4.0
    return y


def retry(n):
    for attempt in range(3):
        try:
            if attempt < n:
                raise RuntimeError("no")
            return attempt
        except RuntimeError:
            if attempt == 2:
                raise ValueError("gave up") from None
    return -1


def outer_retry(n):
    try:
        return retry(n)
    except ValueError:
        return 99


def state(xs):
    pos = 0
    neg = 0
    acc = np.zeros(2)
    for i in range(len(xs)):
        try:
            acc[i % 2] += xs[i]
            if xs[i] < 0.0:
                raise ValueError("neg")
            pos += 1
        except ValueError:
            neg += 1
            acc[0] = 0.0
    return pos, neg, acc


PROGRAMS: Sequence[tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]] = (
    (basic, [(2.0, 3), (2.0, -3), (2.0, 300)]),
    (multi, [(2.0, 3), (2.0, -3), (2.0, 300)]),
    (else_raises, [(2.0, 3), (2.0, -3), (2.0, 300), (2.0, 5)]),
    (reraise, [(2.0, 3), (2.0, -3), (2.0, 300)]),
    (in_handler, [(2.0, 3), (2.0, -3), (2.0, 150), (2.0, 250)]),
    (loop_list, [(NUMBERS, 2), (NUMBERS, 95), (NUMBERS, -1)]),
    (loop_break, [(NUMBERS, 20.0), (NUMBERS, 3.0)]),
    (whiles, [(3,)]),
    (outer_retry, [(0,), (2,), (5,)]),
    (changed_before, [(2.0, 3), (2.0, -3)]),
    (nested_scope, [(2.0, 10), (2.0, 2), (2.0, 102)]),
    (state, [(NUMBERS,)]),
    (comp, [(NUMBERS, 2), (NUMBERS, -2)]),
    (fin_return, [(2.0, 3), (2.0, 1)]),
    (fin_loop, [(NUMBERS,)]),
    (fin_error, [(2.0, 3), (2.0, -3)]),
    (recursion, [(5,)]),
    (recursion2, [(5,), (-2,)]),
    (lam, [(2.0, 3), (2.0, -3)]),
    (chosen, [(2.0, 1), (-2.0, 1), (2.0, -1), (20.0, -1)]),
)


@pytest.mark.parametrize(("program", "calls"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_errors_are_caught_as_in_python(program: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    function = relay(program)
    for arguments in calls:
        assert_as_python(function, program, arguments)
    check(function.typed(*calls[0]), "typed")
    check(function.core(*calls[0]), "structured")


@pytest.mark.parametrize("level", [0, 1, 3])
def test_at_each_level(level: int) -> None:
    @relay(opt_level=level)
    def several(x, n, xs):
        return reraise(x, n), in_handler(x, n), changed_before(x, n), chosen(x, n), loop_list(xs, n), state(xs)

    for n in (3, -3, 150):
        arguments = (2.0, n, NUMBERS)
        assert_as_python(several, lambda *a: several.__wrapped__(*a), arguments)


def safe_log(x):
    if x <= 0.0:
        raise ValueError(f"log of {x}")
    return rl.log(x)


@relay
def guarded(x):
    try:
        return safe_log(x) * x
    except ValueError:
        return x * x


@relay
def sum_of_logs(xs):
    total = 0.0
    for x in xs:
        try:
            total += safe_log(x)
        except ValueError:
            total -= x * x
    return total


def test_derivatives_and_batches() -> None:
    for x, slope, curvature in ((2.0, 1.0 + np.log(2.0), 0.5), (-3.0, -6.0, 2.0)):
        assert_modes_agree(guarded, np.float64(x), gradient=True, levels=(0, 2, 3))
        assert_modes_agree(grad(guarded), np.float64(x), expected=slope)
        assert_modes_agree(grad(grad(guarded)), np.float64(x), expected=curvature)
    expected = np.array([0.0, 9.0, 4.0 * np.log(4.0), 12.0 * np.log(12.0)])
    assert_modes_agree(rl.vmap(guarded), NUMBERS, expected=expected)
    assert_modes_agree(grad(sum_of_logs), NUMBERS, expected=[1.0, 6.0, 0.25, 1.0 / 12.0])


@relay
def batch_in_try(xs):
    try:
        return rl.vmap(safe_log)(xs).sum()
    except ValueError:
        return xs.sum()


@relay
def not_caught(x):
    try:
        try:
            return safe_log(x)
        except KeyError:
            return x
        finally:
            print("finally")
    except IndexError:
        return 0.0


def test_errors_of_a_batch_and_errors_that_nothing_catches(capsys: pytest.CaptureFixture[str]) -> None:
    assert_modes_agree(batch_in_try, NUMBERS, expected=14.0)
    assert_modes_agree(batch_in_try, np.ones(3), expected=0.0)
    for caught in assert_modes_raise(not_caught, -1.0, error=ValueError, match=r"log of -1\.0"):
        assert isinstance(caught.value, rl.ExecutionError)
        assert caught.value.span is not None and "raise ValueError" in str(caught.value)
    assert capsys.readouterr().out == "finally\n" * 2


@relay
def partly_changed(x, n):
    y = x * 2.0
    try:
        for i in range(3):
            y[i] = -1.0
            if i == n:
                raise ValueError("stop")
    except ValueError:
        return y
    return y * 10.0


@relay
def unchanged(x, n):
    y = x * 2.0
    try:
        z = y.copy()
        z[0] = 5.0
        if n > 0:
            raise ValueError("stop")
        return z
    except ValueError:
        return y


@relay
def changed_by_another_name(x, n):
    y = x * 2.0
    try:
        z = y
        z[0] = 5.0
        if n > 0:
            raise ValueError("stop")
        return z
    except ValueError:
        return y + 1.0


@relay
def assigned_in_the_body(a, b):
    try:
        w = a @ b
        assert w.sum() > 0.0, "the sum is positive"
        return w
    except AssertionError:
        return w * 2.0


def test_values_that_the_body_has_changed() -> None:
    for n, expected in ((1, [-1.0, -1.0, 2.0, 2.0]), (7, [-10.0, -10.0, -10.0, 20.0])):
        assert_modes_agree(partly_changed, np.ones(4), n, expected=expected)
    for n, expected in ((1, [2.0, 2.0, 2.0]), (0, [5.0, 2.0, 2.0])):
        assert_modes_agree(unchanged, np.ones(3), n, expected=expected)
    for n, expected in ((1, [6.0, 3.0, 3.0]), (0, [5.0, 2.0, 2.0])):
        assert_modes_agree(changed_by_another_name, np.ones(3), n, expected=expected)
    eye = np.eye(2)
    assert_modes_agree(assigned_in_the_body, eye, -eye, expected=-2.0 * eye)


def test_what_cannot_be_caught_is_told() -> None:
    @relay
    def derivative_inside(x):
        try:
            return grad(safe_log)(x)
        except ValueError:
            return x

    with pytest.raises(rl.CompileError, match="a derivative is called in a `try`, and safe_log may fail"):
        derivative_inside(2.0)
    for text, message in (
        ("try:\n        return x\n    except x:\n        return x", "names classes of exceptions"),
        ("try:\n        return x\n    except* ValueError:\n        y = x\n    return x", r"`except\*` is not part"),
        ("raise\n", "a `raise` outside of an `except` names the error"),
    ):
        with pytest.raises(rl.FrontendError, match=message):
            rl.from_source(f"def f(x):\n    {text}\n")


def told(x):
    """The user's texts have words that the errors of Python's operations have, too."""
    try:
        assert x > 0.0, "value out of range"
        assert x < 9.0, f"ValueError: {x} has no key"
        if x > 5.0:
            raise ValueError("IndexError: division by zero")
    except (IndexError, ZeroDivisionError, KeyError):
        return 1
    except ValueError:
        return 2
    except AssertionError:
        return 3
    return 4


def test_words_of_texts_do_not_make_the_class() -> None:
    for x in (-1.0, 1.0, 7.0, 10.0):
        assert_as_python(relay(told), told, (x,))


def endless(n):
    return endless(n + 1) + 1


@relay
def guarded_recursion(n):
    try:
        return endless(n)
    except Exception:
        return 0


def test_too_deep_recursion_is_not_caught() -> None:
    with pytest.raises(rl.ExecutionError):
        guarded_recursion(0)
