"""Random functions in Python's notation: what is well typed evaluates to a value of exactly its type; what is not is
the user's mistake, never ours."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import relay as R
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.types import QuantifiedType, TensorType, TupleType, Type
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.text.type_parser import parse_type

NAMES = {"relay": R, "Tensor": R.Tensor, "Float": R.Float, "Int": R.Int, **dict(zip("nm", R.dims("n m"), strict=True))}
ANNOTATIONS = {
    "a": "Tensor[Float, (n, 3)]", "b": "Tensor[Float, (3,)]", "c": "Tensor[Float, ()]", "d": "Tensor[Int, (n,)]",
    "e": "tuple[Tensor[Float, (m, n)], Tensor[Int, ()]]",
}  # fmt: skip
N, M = 4, 2
ARGUMENTS = {
    "a": np.linspace(-1, 1, 12, dtype=np.float32).reshape(N, 3), "b": np.float32([0.5, -2, 1]), "c": np.float32(1.5),
    "d": np.int32([3, 1, 0, 2]), "e": (np.ones((M, N), np.float32), np.int32(1)),
}  # fmt: skip

leaves = st.sampled_from(["a", "b", "c", "d", "e", "e[0]", "e[1]", "1", "0.5", "a.T", "a.shape[0]", "a[0]", "d[1:]"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    unary = st.sampled_from(
        ["-({})", "({}).sum()", "({}).sum(axis=0)", "relay.exp({})", "({})[0]", "({})[1:]", "({}).T", "(({}), 1.0)",
         "({}).reshape((-1,))", "({}).astype(Float)", "relay.softmax({})", "(lambda v: v)({})", "[{}][0]", "f({})",
         "({}).mean(axis=-1, keepdims=True)", "relay.one_hot({}, 3)", "relay.argmax({}, axis=0)"]
    )  # fmt: skip
    binary = st.sampled_from(
        ["({}) + ({})", "({}) * ({})", "({}) @ ({})", "({}) > ({})", "(({}), ({}))", "relay.maximum({}, {})",
         "relay.concatenate(({}, {}))", "relay.stack(({}, {}))", "({}) if c > 0.0 else ({})", "({}) // ({})",
         "relay.where(c > 1.0, {}, {})"]
    )  # fmt: skip
    return st.one_of(
        st.builds(str.format, unary, inner),
        st.builds(str.format, binary, inner, inner),
    )


expressions = st.recursive(leaves, combined, max_leaves=8)
loops = st.builds(
    "    y = {}\n    for i in range(e[1]):\n        y = {}\n    return (y, {})\n".format,
    expressions, st.one_of(st.just("y"), st.builds("y + ({})".format, expressions), expressions), expressions,
)  # fmt: skip
bodies = st.one_of(st.builds("    return {}\n".format, expressions), loops)


def source(body: str) -> str:
    parameters = ", ".join(f"{name}: {annotation}" for name, annotation in ANNOTATIONS.items())
    return f"def g({parameters}):\n    f = lambda v: (v, v)\n{body}"


def type_of(value: object) -> Type:
    """The type of a result."""
    if isinstance(value, tuple):
        return TupleType(tuple(map(type_of, value)))
    array = np.asarray(value)
    base = next(b for b in (R.Float, R.Int, R.Bool, R.Int64, R.Float64) if b.dtype == array.dtype)
    return TensorType(base, array.shape)


@settings(max_examples=150, deadline=None)
@given(bodies)
def test_random_functions(body: str) -> None:
    arguments = list(ARGUMENTS.values())
    try:
        function = R.from_source(source(body), NAMES)
        assert alpha_equal(parse(to_text(function.surface)), function.surface)
        result = function.interpret(*arguments)
    except R.InternalError:
        raise
    except R.RelayError as error:
        assert error.diagnostics
        return
    assert type_of(result) == function.typed(*arguments).main.result
    try:
        scheme = function.type
    except R.InternalError:
        raise
    except R.RelayError:
        return  # right at these sizes, and not at all that the annotations allow
    inner = scheme.body if isinstance(scheme, QuantifiedType) else scheme
    assert str(parse_type(str(scheme))) == str(scheme), inner
