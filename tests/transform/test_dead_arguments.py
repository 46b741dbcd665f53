"""What functions take and return once nobody needs the rest, also through recursion."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.analysis.alpha import alpha_equal
from relay.transform.pipeline import Pipeline

HEAD = """
entry fn f(%x: Tensor[float64, ()]) -> Tensor[float64, ()] {
  let %a: (Tensor[float64, ()], Tensor[float64, ()]) = @g(%x, 3i32);
  let %b: Tensor[float64, ()] = %a.0;
  %b
}
"""


def steps(calls: str, made: str) -> str:
    """A function that makes a pair of its arguments in the last round, and `made` of those of `calls` before it."""
    return f"""
fn g(%x: Tensor[float64, ()], %n: Tensor[int32, ()]) -> (Tensor[float64, ()], Tensor[float64, ()]) {{
  let %c: Tensor[bool, ()] = less_equal(%n, 0i32);
  if %c then {{
    let %q: (Tensor[float64, ()], Tensor[float64, ()]) = (%x, %x);
    return %q
  }} else {{
    let %m: Tensor[int32, ()] = subtract(%n, 1i32);
    let %r: (Tensor[float64, ()], Tensor[float64, ()]) = @{calls}(%x, %m);
    let %u: Tensor[float64, ()] = %r.0;
    let %v: Tensor[float64, ()] = %r.1;
    {made}
    let %e: Tensor[float64, ()] = sin(%u);
    let %w: Tensor[float64, ()] = exp(%v);
    let %k: (Tensor[float64, ()], Tensor[float64, ()]) = (%e, %w);
    return %k
  }};
  dead
}}
"""


SWAPPED = """
fn h(%x: Tensor[float64, ()], %n: Tensor[int32, ()]) -> (Tensor[float64, ()], Tensor[float64, ()]) {
  let %r: (Tensor[float64, ()], Tensor[float64, ()]) = @g(%x, %n);
  let %u: Tensor[float64, ()] = %r.1;
  let %v: Tensor[float64, ()] = %r.0;
  let %w: Tensor[float64, ()] = cos(%u);
  let %k: (Tensor[float64, ()], Tensor[float64, ()]) = (%v, %w);
  %k
}
"""


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (HEAD + steps("g", ""), True),  # what makes the second part is only of second parts
        (HEAD + steps("h", "") + SWAPPED, True),
        (HEAD + steps("g", 'print "v = " %v "\\n";'), False),
        (HEAD + steps("g", "").replace("sin(%u)", "multiply(%u, %v)"), False),
        (HEAD + steps("g", "let %z: Tensor[float64, ()] = @whole(%r);").replace("sin(%u)", "sin(%z)")
         + "\nfn whole(%p: (Tensor[float64, ()], Tensor[float64, ()])) -> Tensor[float64, ()]"
         + " { let %y: Tensor[float64, ()] = %p.1; %y }", False),
    ],
)  # fmt: skip
def test_parts_that_only_make_themselves(text: str, gone: bool, capsys: pytest.CaptureFixture[str]) -> None:
    before = relay.parse(text)
    after = Pipeline("eliminate-dead-arguments", checked=True)(before)
    assert ("exp(" not in relay.to_text(after)) == gone
    outcomes = [(interpreter.run(m, [np.float64(0.5)]), capsys.readouterr().out) for m in (before, after)]
    assert outcomes[0] == outcomes[1]
    assert alpha_equal(Pipeline("eliminate-dead-arguments")(after), after)


def test_effects_stay_where_no_part_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD.replace("%b\n}", "%x\n}") + steps("g", 'print "round" %n "\\n";')
    before = relay.parse(text)
    after = Pipeline("eliminate-dead-arguments", checked=True)(before)
    assert "exp(" not in relay.to_text(after)
    interpreter.run(after, [np.float64(0.5)])
    assert capsys.readouterr().out.splitlines() == ["round1", "round2", "round3"]
