"""Statements that call methods which change an array or a list: as in Python, or refused at their line."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import numpy as np
import pytest

import relay
from relay.errors import RelayError

X = np.array([[3, 7, 2], [9, 1, 8]], np.float32)

ARRAYS = [
    *("x.sort()", "x.sort(0)", "x.sort(1)", "x.sort(axis=0)", "x.sort(0, 'stable')", "x.sort(kind='stable')"),
    *("x.sort(stable=True)", "x.sort(**{'axis': 0})", "x[0].sort()", "x[:, 0].sort()", "x[::-1].sort(0)"),
    *("x[0:1].sort()", "x[1:][0] += 1.0", "x[0:2][1][0:2].sort()", "np.add.at(x, np.array([0, 0]), 1.0)"),
]
LISTS = [
    *("xs.sort()", "xs.sort(reverse=True)", "xs.sort(key=abs, reverse=True)", "xs.sort(**{'reverse': True})"),
    *(
        "xs.sort(key=None)",
        "xs.reverse()",
        "xs.clear()",
        "xs.extend(xs)",
        "xs.insert(-100, 9.0)",
        "xs.insert(100, 9.0)",
    ),
    *("xs.remove(3.0)", "xs.pop()", "xs.pop(-2)", "xs += [1.0]", "del xs[:2]", "xs[1:2] = [5.0, 6.0]", "xs[:] = []"),
]
UNSEEN = [
    *("x.ravel().sort()", "x.reshape(-1).sort()", "x.flatten().sort(0)", "(x + 1).sort()", "[3, 1].sort()", "W.sort()"),
    *("x[[1, 0]].sort()", "x[:, [0, 1]].sort()", "x[[1, 0]][0] = 1.0", "x[x > 2][0] = 1.0", "xs[:].sort()"),
    *("xs[1:].reverse()", "xs[:].append(1.0)", "xs[1:].pop(0)", "del xs[1:][0]", "xs[1:][0] = 5.0", "xs.copy().sort()"),
]
REFUSED = [
    *("x.partition(1)", "x.fill(3)", "x.resize(6)", "x.put(0, 5.0)", "x.itemset(0, 5.0)", "x.setflags(write=False)"),
    *(
        "x.byteswap(True)",
        "x.clip(2.0, 4.0, x)",
        "x.clip(2.0, 4.0, out=x)",
        "np.copyto(x, 0.0)",
        "np.put(x, [0], [5.0])",
    ),
    *("np.place(x, x > 2, [4.0])", "np.putmask(x, x > 2, 0.0)", "np.exp(x, out=x)", "np.add(x, 1.0, x)"),
    *("np.sum(x, axis=0, out=x[0])", "x.cumsum(axis=0, out=x)", "np.fill_diagonal(x, 0.0)", "x.sort(axis=None)"),
    *("x.flat[0] = 1.0", "x.T.sort()", "xs.sort(**options)", "xs.sort(None)", "x.__setitem__(0, 5.0)"),
    *("xs.__setitem__(0, 5.0)", "list.sort(xs)", "[xs.append(1.0) for _ in range(2)]", "f = xs.sort; f()"),
]


def program(statement: str, at_run_time: bool = False) -> Callable[..., object]:
    """A function that has the statement; its list is of a length that is known, or not."""
    made = "[a * 5 % 7 * 1.0 for a in range(n)]" if at_run_time else "[3.0, 1.0, 2.0]"
    text = f"def f(x, n):\n    x = x.copy()\n    options = {{'reverse': True}}\n    xs = {made}\n    {statement}\n"
    text += "    return x, xs\n"
    name = f"<{statement}, {at_run_time}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np, "W": X.copy()}
    exec(compile(text, name, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("statement", [*ARRAYS, *LISTS])
def test_as_in_python(statement: str) -> None:
    for at_run_time in (False, True):
        function = program(statement, at_run_time)
        array, items = function(X.copy(), np.int32(6))  # type: ignore[misc]
        made = relay.relay(function)
        for call in (made.interpret, made) if at_run_time else (made.interpret,):
            found, numbers = call(X.copy(), np.int32(6))
            np.testing.assert_array_equal(found, array)
            np.testing.assert_array_equal(np.array([float(v) for v in numbers]), items)


@pytest.mark.parametrize("statement", [*UNSEEN, *REFUSED])
def test_changes_that_nothing_sees_are_refused(statement: str) -> None:
    with pytest.raises(RelayError) as raised:
        relay.relay(program(statement)).interpret(X.copy(), np.int32(6))
    text = str(raised.value)
    assert ":5:" in text.splitlines()[0] and "bug in Relay" not in text
    if statement in UNSEEN:
        assert "nothing sees this change" in text
