"""Cells that become values, and cells that must stay."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import Program
from zoo.references import reference_selection

import relay
from relay.ir.expr import Function, Module, RefNew
from relay.ir.traverse import walk
from relay.ir.types import RefType
from relay.transform.memory.reference_elimination import eliminate_references
from relay.transform.pipeline import Pipeline


def cells(module: Module) -> int:
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    return sum(isinstance(b.value, RefNew) for f in functions for b in walk(f.body))


def test_gradients_through_private_cells_need_no_cells() -> None:
    @relay
    def f(x, n):  # type: ignore[no-untyped-def]
        total = relay.ref(0.0)
        last = relay.ref(x)
        while n > 0:
            if n % 2 == 0:
                total.value += x[0] * last.value[1]
            else:
                last.value = last.value * x
            n -= 1
        return total.value + last.value.sum()

    x = np.array([1.5, -2.0])
    assert cells(f.core(x, 5)) == 0
    derivative = relay.grad(f)
    assert cells(derivative.core(x, 5)) == 0
    for found, expected in zip(derivative(x, 5), derivative.interpret(x, 5), strict=True):
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_seen_elsewhere_stays() -> None:
    text = """
    entry fn f(%x: Tensor[float64, ()], %c: Tensor[bool, ()]) -> Tensor[float64, ()] {
      let %chosen: Ref[Tensor[float64, ()]] = ref %x;
      let %passed: Ref[Tensor[float64, ()]] = ref %x;
      let %stored: Ref[Tensor[float64, ()]] = ref %x;
      let %renamed: Ref[Tensor[float64, ()]] = ref %x;
      let %tested: Ref[Tensor[float64, ()]] = ref %x;
      let %private: Ref[Tensor[float64, ()]] = ref %x;
      let %other: Ref[Tensor[float64, ()]] = if %c then { yield %chosen } else { yield %chosen };
      @g(%passed);
      let %t: (Ref[Tensor[float64, ()]],) = (%stored,);
      let %a: Ref[Tensor[float64, ()]] = %renamed;
      write %private 2.0f64;
      if { write %tested 1.0f64; yield %c } then { yield } else { yield };
      let %r: Tensor[float64, ()] = read %private;
      let %s: Tensor[float64, ()] = read %other;
      let %u: Tensor[float64, ()] = add(%r, %s);
      %u
    }
    fn g(%r: Ref[Tensor[float64, ()]]) -> () {
      write %r 3.0f64;
      let %unit: () = ();
      %unit
    }
    """
    before = relay.parse(text.replace("@g(%passed);", "let %v: () = @g(%passed);"))
    after = Pipeline([eliminate_references], checked=True)(before)
    assert (cells(before), cells(after)) == (6, 3)  # passed, stored and tested stay


CHOSEN = [p for p in reference_selection.PROGRAMS if p.name != "anew_in_each_round"]


@pytest.mark.parametrize("program", CHOSEN, ids=lambda p: p.name)
def test_references_that_are_chosen_among_private_cells_leave_none(program: Program) -> None:
    derivative = relay.grad(program.function)
    for core in (program.function.core(*program.arguments), derivative.core(*program.arguments)):
        assert cells(core) == 0
        assert not any(
            isinstance(t.type, RefType) for f in core.functions.values() for b in walk(f.body) for t in b.targets
        )


def test_a_cell_that_each_round_makes_for_the_next_stays() -> None:
    (program,) = (p for p in reference_selection.PROGRAMS if p.name == "anew_in_each_round")
    assert cells(program.function.core(*program.arguments)) == 2
