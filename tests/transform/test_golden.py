"""What each pass makes of a small program: `tests/golden/*.relay` has the passes, the program, and what comes out.

`pytest tests/transform/test_golden.py --update-golden` writes the results anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import relay
from relay.ir.analysis.alpha import alpha_equal
from relay.transform.passes import PASSES, read_steps, stage_of

FOLDER = Path(__file__).parents[1] / "golden"
CASES = sorted(FOLDER.glob("*.relay"))
RULE = "# ---- becomes ----\n"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    head, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    before = relay.parse(head, path.name)
    passes = head.splitlines()[0].removeprefix("# passes: ")
    after = relay.transform.Pipeline(passes, checked=True, stage=stage_of(before))(before)
    found = relay.to_text(after) + "\n"
    if request.config.getoption("--update-golden"):
        path.write_text(head.rstrip() + "\n\n" + RULE + found, encoding="utf-8")
        return
    assert found == expected, f"pytest {path} --update-golden writes the new result"
    assert alpha_equal(relay.parse(expected), after)


def test_every_pass_has_an_example() -> None:
    shown = set()
    for path in CASES:
        passes = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# passes: ")
        shown |= {step.name.partition("{")[0] for step in read_steps(passes)}
    assert shown >= set(PASSES) - {"expand_composites"}  # no operator that comes with Relay needs it
