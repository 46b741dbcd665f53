"""What passes need and give: wrong orders are refused, and broken promises found."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.errors import InternalError
from relay.ir.expr import Module
from relay.transform.passes import ConfiguredPass
from relay.transform.pipeline import LEVELS, PHASES, Pipeline
from relay.transform.properties import CODE, Contract, properties_of


@relay
def slope(x):
    def rounds(y, n):
        return y if n == 0 else rounds(y * relay.relu(y), n - 1)

    return relay.grad(lambda y: rounds(y, 3))(x)


X = np.float32(2)


@pytest.mark.parametrize(
    ("passes", "stage", "wanted", "message"),
    [
        ("inline", "typed", (), "inline works on programs that are structured: put specialize, structure before it"),
        ("specialize, cse", "typed", (), "cse works on programs that are structured: put structure before it"),
        ("structure", "typed", (), "structure works on programs that are first-order: put specialize before it"),
        (
            "simplify",
            "structured",
            ("differentiated",),
            "what follows works on programs that are differentiated: put differentiate at the end",
        ),
        (
            "loop-tail-calls, inline",
            "structured",
            ("looped",),
            "what follows works on programs that are free of tail calls, which inline may undo: "
            "put loop_tail_calls at the end",
        ),
        (
            "expand_composites, differentiate",
            "structured",
            ("expanded",),
            "what follows works on programs that are expanded, which differentiate may undo: "
            "put expand_composites at the end",
        ),
    ],
)
def test_wrong_orders_are_refused(passes: str, stage: str, wanted: tuple[str, ...], message: str) -> None:
    pipeline = Pipeline(passes, stage=stage, wanted=wanted)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as error:
        pipeline(slope.typed(X))
    assert str(error.value).replace("eliminate_common_subexpressions", "cse") == message


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_levels_give_what_code_generation_needs(level: int) -> None:
    module = slope.typed(X)
    assert properties_of(module) == frozenset()
    pipeline = Pipeline.for_level(level, checked=True)
    assert pipeline.wanted == CODE
    core = pipeline(module)
    assert properties_of(core) == CODE
    phases = [Pipeline.for_level(level, (phase,)) for phase in PHASES]
    for phase in phases:
        module = phase(module)
    assert module.alpha_hash() == core.alpha_hash()


def test_a_pass_that_does_not_keep_its_promise_is_found() -> None:
    def lazy(module: Module) -> Module:
        return module

    step = ConfiguredPass("lazy", lazy, Contract(gives=frozenset({"differentiated"})))
    module = Pipeline("specialize, structure", stage="typed")(slope.typed(X))
    assert Pipeline([step])(module) is module
    with pytest.raises(InternalError, match="after lazy the module is not differentiated"):
        Pipeline([step], checked=True)(module)
