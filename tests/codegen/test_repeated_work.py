"""What the compiler does not do twice, and what would take TVM exponential time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.lowering.module_builder import text
from relay.ir.expr import Binding, Function, Module, OpCall
from relay.ir.rebuild import rebuild_block
from relay.operator import rewriting
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.transform.cleanup.simplification import reduce_strength, simplify
from relay.transform.core.rebuilding import with_body, with_functions

X = np.linspace(-2.0, 2.0, 64, dtype=np.float32)
CHAIN = "def f(x):\n" + "".join(f"    x = relay.tanh(x * {n}.5) + relay.sin(x)\n" for n in range(1, 9)) + "    return x"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the calls that equations are tried on, as long as the test runs."""
    tried: list[str] = []
    whole = rewriting.Application.__init__

    def counted(self: Any, call: OpCall, definition: Any) -> None:
        tried.append(call.operator)
        whole(self, call, definition)

    monkeypatch.setattr(rewriting.Application, "__init__", counted)
    return tried


def core(source: str) -> Module:
    made: Module = relay.from_source(source, {"relay": relay}).core(X)
    return made


def changed(module: Module, position: int) -> Module:
    """The module, one of whose calls is another object, in another body."""
    main = module.main
    bindings: list[Binding] = list(main.body.bindings)
    call = bindings[position].value
    assert isinstance(call, OpCall)
    other = OpCall(call.operator, call.arguments, dict(call.attributes), call.span)
    bindings[position] = Binding(bindings[position].targets, other)
    body = rebuild_block(main.body, bindings, main.body.terminator)
    functions = {n: with_body(f, body) if f is main else f for n, f in module.functions.items()}
    assert all(isinstance(f, Function) for f in functions.values())
    return with_functions(module, functions)


def test_equations_are_tried_on_what_has_changed_and_what_reads_it(looked_at: list[str]) -> None:
    module = reduce_strength(simplify(core(CHAIN)))
    count = len(module.main.body.bindings)
    assert count >= 32
    looked_at.clear()
    last = simplify(changed(module, count - 1))
    few = len(looked_at)
    looked_at.clear()
    first = simplify(changed(module, 0))
    assert few <= 1 and len(looked_at) == 16  # products and sums have equations
    assert to_text(last) == to_text(first) == to_text(module)


QUOTIENT = """entry fn f(%x: Tensor[float32, (64,)]) -> Tensor[float32, (64,)] {
  let %q: Tensor[float32, (64,)] = divide(%x, 3.0f32);
  %q
}
"""


def test_other_equations_are_tried_nevertheless() -> None:
    module = simplify(parse(QUOTIENT))
    assert "divide" in to_text(simplify(module))
    assert "divide" not in to_text(reduce_strength(module))


@pytest.mark.parametrize("operator", ["tanh", "erf", "sigmoid", "exp", "log", "gelu", "atan"])
def test_names_in_kernels_are_not_computed_from_many_names(operator: str) -> None:
    assert text(core(f"def f(x): return relay.{operator}(x)"), 1).count("T.Let(") < 4
