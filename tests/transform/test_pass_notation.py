"""Choosing passes by name, and what `relay.transform`, `relay.optimize` and `relay.ir.diff` tell about them."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import Program

import relay
from relay.eval import interpreter
from relay.ir.expr import Function, Module
from relay.ir.validation.check import check
from relay.transform.passes import ALIASES, PASSES, options_of, read_steps
from relay.transform.pipeline import Pipeline

TEXT = """
entry fn f(%x: Tensor[float64, (3, 4)], %w: Tensor[float64, (4, 5)]) -> Tensor[float64, ()] {
  let %product: Tensor[float64, (3, 5)] = matmul(%x, %w);
  let %again: Tensor[float64, (3, 5)] = matmul(%x, %w);
  let %y: Tensor[float64, (3, 5)] = tanh(%product);
  let %z: Tensor[float64, (3, 5)] = multiply(%y, %again);
  let %total: Tensor[float64, ()] = sum(%z, axis=none, keepdims=false);
  %total
}
"""


def lowered(program: Program) -> Module:
    """The program's structured core."""
    typed = program.function.typed(*program.arguments)
    return relay.transform.structure(relay.transform.specialize(typed))


def test_every_pass_is_public() -> None:
    for name in (*PASSES, *ALIASES):
        if name != "differentiate":  # relay.ad's
            assert callable(getattr(relay.transform, name))
    before = relay.parse(TEXT)
    after = relay.transform.cse(before)
    assert relay.to_text(after).count("matmul") == 1
    assert relay.to_text(before).count("matmul") == 2


def test_a_pipeline_is_written_as_text() -> None:
    pipeline = relay.transform.Pipeline("inline, cse,fold-constants{max_size=1MiB} ,  dce", checked=True)
    after = pipeline(relay.parse(TEXT))
    assert [s.name for s in pipeline.passes] == [
        "inline", "eliminate_common_subexpressions", "fold_constants{max_size=1048576}", "eliminate_dead_code",
    ]  # fmt: skip
    assert [(r.bindings_before, r.bindings_after) for r in pipeline.records] == [(5, 5), (5, 4), (4, 4), (4, 4)]
    assert pipeline.records[0].text.count("matmul") == 2
    assert pipeline.records[-1].text == relay.to_text(after)
    assert Pipeline("")(after) is after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cse, inlin", "there is no pass 'inlin'; did you mean 'inline'?"),
        ("everything", "there is no pass 'everything'; there are specialize"),
        ("fold-constants{max=1}", "the pass 'fold-constants' has no option 'max'; there are max_size"),
        ("fold-constants{max_sise=1}", "did you mean 'max_size'?"),
        ("fold-constants{max_size=x}", "is a whole number, as 4096 or 1MiB, found 'x'"),
        ("fold-constants{max_size}", "needs a value: max_size="),
        ("fold-constants{max_size=1, max_size=2}", "is given twice"),
        ("cse{a=1}", "the pass 'cse' has no option 'a'; it has none"),
        ("cse inline", "expected a pass such as `cse`"),
        ("cse{", "expected a pass such as `cse`"),
    ],
)
def test_what_is_no_pass_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_steps(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_reach_the_pass() -> None:
    module = relay.parse(
        "fn f() -> Tensor[float64, (3,)] { let %x: Tensor[float64, (3,)] = exp([1.0, 2.0, 3.0]f64); %x }"
    )
    assert "exp" in relay.to_text(Pipeline("fold-constants{max_size=23}")(module))
    assert "exp" not in relay.to_text(Pipeline("fold-constants{max_size=24}")(module))
    assert options_of("fold_constants") == {"max_size": 8192, "made": False}


# ---- fusion as a transformation


def test_kernels_are_functions_and_equal_ones_are_shared() -> None:
    @relay
    def f(x, y):  # type: ignore[no-untyped-def]
        return (relay.exp(x + 1).sum() + relay.exp(y + 1).sum()) ** 2

    x = np.linspace(0, 1, 6).reshape(2, 3)
    module = relay.optimize(f.core(x, 2 * x), 2)
    fused = relay.transform.fuse(module)
    check(fused, "structured")
    assert len(fused.functions) == 3
    assert relay.to_text(relay.transform.fuse(fused)) == relay.to_text(fused)
    np.testing.assert_array_equal(interpreter.run(fused, [x, 2 * x]), interpreter.run(module, [x, 2 * x]))


def test_operators_with_several_results_are_no_kernels() -> None:
    """Code is generated for what they are composed of; in a program that is not expanded they stay."""
    before = relay.parse("""
    entry fn f(%x: Tensor[float64, (4,)]) -> Tensor[float64, (2,)] {
      let %a: Tensor[float64, (4,)] = exp(%x);
      let %p: (Tensor[float64, (2,)], Tensor[float64, (2,)]) = split(%a, indices_or_sections=2, axis=0);
      let %b: Tensor[float64, (2,)] = %p.1;
      let %c: Tensor[float64, (2,)] = negative(%b);
      %c
    }
    """)
    after = relay.transform.fuse(before)
    assert list(after.functions) == ["f", "fused_exp", "fused_negative"]
    assert relay.to_text(relay.transform.fuse(after)) == relay.to_text(after)
    x = np.array([0.5, -1.0, 2.0, 0.0])
    np.testing.assert_array_equal(interpreter.run(after, [x]), interpreter.run(before, [x]))


# ---- differences


def test_the_difference_of_two_modules() -> None:
    before = relay.parse(TEXT)
    after = relay.transform.cse(before)
    found = relay.ir.diff(before, after)
    assert found
    assert [str(c) for c in found.removed] == ["- f: %again: Tensor[float64, (3, 5)] = matmul"]
    assert found.added == () and found.retyped == ()
    assert found.operators == {"matmul": (2, 1)}
    assert (found.before.flops, found.after.flops) == (2 * 120 + 15 + 15 + 15, 120 + 15 + 15 + 15)
    assert (found.before.bytes, found.after.bytes) == (4 * 120 + 8, 3 * 120 + 8)
    assert "FLOPs: 285 -> 165" in str(found)
    assert not relay.ir.diff(before, before)


def test_sizes_that_are_no_numbers_count_as_some() -> None:
    before = relay.parse("""
    dims n;
    entry fn f(%x: Tensor[float32, (n, 3)], %y: Tensor[float32, (Any,)])
      -> (Tensor[float32, (n,)], Tensor[float32, (Any,)]) {
      let %a: Tensor[float32, (n, 3)] = exp(%x);
      let %b: Tensor[float32, (n, 3)] = exp(%x);
      let %c: Tensor[float32, (n, 3)] = add(%a, %b);
      let %s: Tensor[float32, (n,)] = sum(%c, axis=1);
      let %z: Tensor[float32, (Any,)] = exp(%y);
      let %r: (Tensor[float32, (n,)], Tensor[float32, (Any,)]) = (%s, %z);
      %r
    }
    """)  # fmt: skip
    found = relay.ir.diff(before, relay.transform.cse(before))
    assert (found.before.flops, found.after.flops) == (4 * 64 * 3 + 64, 3 * 64 * 3 + 64)
    assert "FLOPs: about 832 -> 640" in str(found) and "are taken as 64" in str(found)


def test_the_difference_of_parsed_texts_goes_by_name() -> None:
    found = relay.ir.diff(relay.parse(TEXT), relay.parse(TEXT.replace("float64", "float32")))
    assert len(found.retyped) == 5 and not found.added and not found.removed
    found = relay.ir.diff(relay.parse(TEXT), relay.parse(TEXT.replace("tanh", "exp")))
    assert [str(c) for c in found.replaced] == ["~ f: %y = tanh -> exp"]


def test_work_counts_rounds_and_the_most_expensive_arm() -> None:
    def flops(rounds: str) -> relay.ir.Work:
        return relay.ir.work(
            relay.parse(f"""
            entry fn f(%x: Tensor[float64, (5,)], %n: Tensor[int32, ()]) -> Tensor[float64, (5,)] {{
              let %y: Tensor[float64, (5,)] = loop 'l for %i: Tensor[int32, ()] < {rounds}
                  (%p: Tensor[float64, (5,)] = %x) {{
                let %q: Tensor[float64, (5,)] = @g(%p);
                next 'l(%q)
              }};
              %y
            }}
            fn g(%x: Tensor[float64, (5,)]) -> Tensor[float64, (5,)] {{
              let %y: Tensor[float64, (5,)] = if true then {{
                let %e: Tensor[float64, (5,)] = exp(%x);
                yield %e
              }} else {{ yield %x }};
              %y
            }}
            """)
        )

    assert (flops("3i32").flops, flops("3i32").bytes) == (15, 120)
    assert not flops("3i32").exact
    assert flops("%n").flops == 5


def test_the_hash_of_a_module_is_a_method() -> None:
    module = relay.parse(TEXT)
    assert module.alpha_hash() == relay.ir.alpha_hash(module) == relay.parse(TEXT.replace("%y", "%t")).alpha_hash()
    assert isinstance(module.main, Function)
