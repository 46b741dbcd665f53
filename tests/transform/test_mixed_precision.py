"""Mixed precision: which operators compute in the short float, and how far the results are from float32's."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.expr import Module, OpCall
from relay.ir.traverse import walk
from relay.ir.types import TensorType
from relay.ir.validation.check import check
from relay.transform.pipeline import Pipeline
from relay.transform.precision.mixed_precision import SHORT, to_mixed_precision


@relay
def network(x, w1, b1, w2):  # type: ignore[no-untyped-def]
    hidden = relay.relu(x @ w1 + b1)
    logits = hidden @ w2
    return relay.log_softmax(logits * 0.5).sum()


def arguments(dtype: type = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [rng.normal(size=s).astype(dtype) for s in ((5, 8), (8, 6), (6,), (6, 4))]


def dtypes(module: Module) -> dict[str, set[str]]:
    """The dtypes that each operator computes in."""
    found: dict[str, set[str]] = {}
    for binding in walk(module.main.body):
        type_ = binding.targets[0].type if binding.targets else None
        if isinstance(binding.value, OpCall) and isinstance(type_, TensorType):
            found.setdefault(binding.value.operator, set()).add(str(type_.base))
    return found


@pytest.mark.parametrize(("dtype", "error"), [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_products_are_short_and_sensitive_operators_are_not(dtype: str, error: float) -> None:
    values = arguments()
    before = network.core(*values)
    after = Pipeline(f"to-mixed-precision{{dtype={dtype}}}")(before)
    check(after, "structured")
    assert after.main.type == before.main.type
    found = dtypes(after)
    assert found["matmul"] == found["multiply"] == {dtype}
    assert found["log_softmax"] == found["sum"] == {"float32"}
    assert found["add"] == found["relu"] == {"float32"}  # the other operand of add is a parameter
    expected = interpreter.run(before, values)
    np.testing.assert_allclose(interpreter.run(after, values), expected, rtol=error)
    assert alpha_equal(to_mixed_precision(after, dtype), after)


def test_compiled_mixed_precision() -> None:
    from relay.codegen.runtime import cpu

    values = arguments()
    after = to_mixed_precision(network.core(*values))
    np.testing.assert_allclose(cpu.compile_module(after)(values), network(*values), rtol=2e-3)


def test_other_dtypes_stay() -> None:
    module = network.core(*arguments(np.float64))
    assert alpha_equal(to_mixed_precision(module), module)
    with pytest.raises(ValueError, match="mixed precision is in float16 or bfloat16, found 'float64'"):
        to_mixed_precision(module, "float64")
    with pytest.raises(ValueError, match="of 'to-mixed-precision' is float16 or bfloat16, found 'int8'"):
        Pipeline("to-mixed-precision{dtype=int8}")
    assert set(SHORT) == {"float16", "bfloat16"}


def test_values_are_cast_where_they_are_needed() -> None:
    """Once in a block for all that stands in it, and not outside of the branch that needs it."""
    module = relay.parse("""
    entry fn f(%x: Tensor[float32, (3, 3)], %c: Tensor[bool, ()]) -> Tensor[float32, (3, 3)] {
      let %a: Tensor[float32, (3, 3)] = matmul(%x, %x);
      let %r: Tensor[float32, (3, 3)] = if %c then {
        let %e: Tensor[float32, (3, 3)] = exp(%a);
        let %g: Tensor[float32, (3, 3)] = log(%a);
        let %h: Tensor[float32, (3, 3)] = add(%e, %g);
        yield %h
      } else {
        let %n: Tensor[float32, (3, 3)] = negative(%a);
        yield %n
      };
      let %s: Tensor[float32, (3, 3)] = matmul(%r, %x);
      %s
    }
    """)
    after = Pipeline([to_mixed_precision], checked=True)(module)
    text = relay.to_text(after)
    # x once for both products, a and n in the arms, r for the second product, s for the result.
    assert text.count("cast(") == 5
    x = np.random.default_rng(1).uniform(0.1, 1, (3, 3)).astype(np.float32)
    for c in (True, False):
        expected = interpreter.run(module, [x, np.asarray(c)])
        np.testing.assert_allclose(interpreter.run(after, [x, np.asarray(c)]), expected, rtol=5e-3)
