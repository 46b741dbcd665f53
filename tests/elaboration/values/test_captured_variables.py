"""Variables that functions capture have one type: where they are read, and where they are assigned, is said."""

from __future__ import annotations

import pytest

import relay as R

LATE = """
def f(x):
    def g(n):
        return n + label
    y = g(2)
    label = {value}
    return y
"""
EARLY = """
def f(x):
    label = 1.0
    def g(n):
        return n + label
    y = g(x)
    label = {value}
    return y
"""


@pytest.mark.parametrize(
    ("text", "value", "becomes", "earlier"),
    [
        (LATE, "'a' if x > 0 else 'b'", "a string", "a tensor"),
        (EARLY, "'a'", "the string 'a'", "a number"),
        (EARLY, "(x, x)", "a tuple", "a number"),
        (EARLY, "[x, x]", "a list", "a number"),
        (EARLY, "{'w': x}", "a dict", "a number"),
        (EARLY, "relay.ones((3,))", "a tensor of the shape (3,)", "a number"),
        (
            EARLY.replace("1.0", "relay.ones((2,))"),
            "relay.ones((3,))",
            "a tensor of the shape (3,)",
            "a tensor of the shape (2,)",
        ),
    ],
)
def test_another_type_is_told_with_the_places(text: str, value: str, becomes: str, earlier: str) -> None:
    f = R.from_source(text.format(value=value), {"relay": R})
    with pytest.raises(R.TypeMismatch) as raised:
        f.interpret(1.5)
    message = str(raised.value)
    assert f"`label` becomes {becomes} here, and is {earlier} elsewhere" in message
    assert f"----- read here, as {earlier}" in message
    assert "pass `label` to the function" in message
    assert "reference" not in message


def test_a_variable_may_be_assigned_after_the_function_is_made() -> None:
    values = {"(x, 'a')": "label[0]", "{'w': x}": "label['w']", "lambda n: n * x": "label(n)", "3.0 * x": "label"}
    for value, read in values.items():
        f = R.from_source(
            f"def f(x):\n    def g(n):\n        return n + {read}\n    label = {value}\n    return g(2.0)\n"
        )
        assert float(f.interpret(1.5)) == {"label(n)": 5.0, "label": 6.5}.get(read, 3.5)
