"""`and`, `or` and `not` have the values of Python's: one of the operands, or whether it is true."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from agreement import modes

import relay as R

pytestmark = pytest.mark.usefixtures("low_effort")

KINDS = {"float": (np.float64, (0.0, 2.5, float("nan"))), "int": (np.int32, (0, 3)), "bool": (np.bool_, (False, True))}
EXPRESSIONS = (
    "p and q",
    "p or q",
    "p and q and True",
    "q or p or False",
    "p and True",
    "p or False",
    "False or p",
    "p and 3",
    "0 and p",
    "p and (q > 1)",
    "(p > 1) or q",
    "not p and q",
    "p or not q",
    "p or (q and p)",
    "1.5 * (p or q)",
    "(p and q and p and q and p and q and p and q and p and q) + 1",
)


MEETING = (*EXPRESSIONS[:4], *EXPRESSIONS[-3:])
"""Where both operands are a result: no dtype is that of an integer or a float, as the run decides."""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_value_is_python_s(expression: str) -> None:
    f = R.from_source(f"def f(p, q):\n    return {expression}\n", {})
    for kinds in itertools.product(KINDS, repeat=2):
        types, values = zip(*(KINDS[kind] for kind in kinds), strict=True)
        for p, q in itertools.product(*values):
            arguments = types[0](p), types[1](q)
            if expression in MEETING and {*kinds} == {"int", "float"}:
                with pytest.raises(R.TypeMismatch, match="one of its operands, as the run decides"):
                    f.interpret(*arguments)
                break
            for run in modes(f):
                np.testing.assert_array_equal(float(run(*arguments)), float(eval(expression)), f"{kinds} {p} {q}")


TRUTHS = {
    "if": "return 1 if x and n else 0",
    "negation": "return int(not (n or x))",
    "list": "xs = [i for i in range(n) if i != 5]\n    return 1 if xs and x else 0",
    "text": "s = f'{n}' if n > 1 else ''\n    return 1 if s and x else 0",
    "while": "while not n % 2 and n and x:\n        n += 3\n    return n",
    "filter": "return len([i for i in range(4) if i and x])",
    "quantifiers": "return int(any(i and x for i in range(3))) + int(all(x or i for i in range(2)))",
    "assertion": "assert n + 1 or x, 'never'\n    return n",
    "guard": "match n:\n        case m if x and m:\n            return 1\n        case _:\n            return 0",
    "many": "return 1 if n or x or n > 3 or not n else 0",
    "counter": "t = 0\n    for i in range(5):\n        t += i and x > 1\n    return t",
}


@pytest.mark.parametrize("name", TRUTHS)
def test_operands_of_conditions_are_of_any_kind(name: str) -> None:
    text = f"def f(n, x):\n    {TRUTHS[name]}\n"
    names: dict[str, object] = {}
    exec(text, names)
    f = R.from_source(text, {})
    for n, x in itertools.product((0, 1, 4), (0.0, 2.0)):
        for run in modes(f):
            assert int(run(n, x)) == names["f"](n, x), (n, x)  # type: ignore[operator]


def test_none_is_false() -> None:
    @R.relay
    def f(x, o: float | None = None):
        return x if o and o > 1.0 else -x

    assert float(f(2.0)) == -2.0
    assert float(f(2.0, 3.0)) == 2.0


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("xs = [i for i in range(n) if i != 5]\n    return xs and n > 1", "len(xs) > 0 and .."),
        ("s = f'{n}' if n > 1 else ''\n    return s or n > 1", "len(s) > 0 or .."),
    ],
)
def test_a_list_and_a_bool_have_no_common_type(lines: str, line: str) -> None:
    f = R.from_source(f"def f(n):\n    {lines}\n", {})
    with pytest.raises(R.TypeMismatch, match="or a bool, which have no common type") as raised:
        f.interpret(np.int32(3))
    assert f"for a condition write `{line}`" in str(raised.value)


def test_a_size_is_a_number() -> None:
    @R.relay(dynamic=True)
    def f(x):
        return x.shape[0] and x.sum() > 1.0

    for size in (0, 2, 5):
        for run in modes(f):
            assert int(run(np.ones(size))) == (size > 1)


def test_the_chosen_operand_has_its_gradient() -> None:
    @R.relay
    def f(x):
        return (x and x > 1.0) * 3.0 + (x or x > 2.0) * x

    assert float(R.grad(f)(2.0)) == pytest.approx(4.0)
    assert float(R.grad(f).interpret(0.5)) == pytest.approx(1.0)
