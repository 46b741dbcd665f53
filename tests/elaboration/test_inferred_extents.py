"""`x.reshape(n, -1)` with an integer of the run, and extrema of nothing: errors of the run, alike in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import relay as R

BODIES = {
    "rows": "return x.reshape(n, -1)",
    "columns": "return x.reshape(-1, n)",
    "computed": "m = n + 1\n    return x.reshape(m, -1)",
    "selected": "return x[x >= 0.0].reshape(n, -1)",
    "guarded": "assert n > 0\n    return x.reshape(n, -1)",
    "in a branch": "if n >= 1:\n        return x.reshape(n, -1)\n    return x.reshape(1, -1)",
    "named": "return np.reshape(x, (n, -1))",
    "both": "return x.reshape(n, 2)",
}


@pytest.mark.parametrize("name", BODIES)
def test_the_extent_is_found_or_there_is_none(name: str) -> None:
    f = R.from_source(f"def f(x, n):\n    {BODIES[name]}\n", {"np": np})
    x = np.arange(6.0)
    for n in map(np.int32, (-1, 0, 2, 3, 4)):  # those of Python would be static
        try:
            found = np.asarray(f.interpret(x, n))
        except R.ExecutionError as error:
            with pytest.raises(R.ExecutionError, match=str(error).split("error: ")[1].split("\n")[0].split("(")[0]):
                f(x, n)
        else:
            np.testing.assert_array_equal(f(x, n), found)
            assert found.size == 6


@pytest.mark.parametrize("call", ["x.max()", "np.min(x)", "max(x)", "x.argmax()", "np.max(x, axis=0)"])
def test_extrema_of_nothing_are_errors(call: str) -> None:
    chosen = R.from_source(f"def f(x):\n    x = x[x > 10.0]\n    return {call}\n", {"np": np})
    with pytest.raises(R.ExecutionError, match="an axis is empty, but must have"):
        chosen.interpret(np.arange(3.0))
    static = R.from_source(f"def f(x):\n    x = x[:0]\n    return {call}\n", {"np": np})
    with pytest.raises(R.ShapeError, match="is empty"):
        static.interpret(np.arange(3.0))
