"""What each pass makes of a small program: `tests/golden/` has a folder for each of `relay/transform/`,
and in its files the passes, the program, and what comes out.

`pytest tests/transform/test_golden.py --update-golden` writes the results anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import relay
from relay.ir.analysis.alpha import alpha_equal
from relay.transform.passes import PASSES, read_steps
from relay.transform.properties import properties_of

FOLDER = Path(__file__).parents[1] / "golden"
CASES = sorted(FOLDER.rglob("*.relay"))
RULE = "# ---- becomes ----\n"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    head, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    before = relay.parse(head, path.name)
    passes = head.splitlines()[0].removeprefix("# passes: ")
    pipeline = relay.transform.Pipeline(passes, checked=True)
    pipeline.known = properties_of(before)
    after = pipeline(before)
    found = relay.to_text(after) + "\n"
    if request.config.getoption("--update-golden"):
        path.write_text(head.rstrip() + "\n\n" + RULE + found, encoding="utf-8")
        return
    assert found == expected, f"pytest {path} --update-golden writes the new result"
    assert alpha_equal(relay.parse(expected), after)


@pytest.mark.parametrize("path", [p for p in CASES if p.stem.endswith("_of_sizes")], ids=lambda p: p.stem)
def test_passes_do_the_same_alone(path: Path) -> None:
    """What a module assumes of its sizes is known to a pass without a pipeline, too."""
    head, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    module = relay.parse(head, path.name)
    for step in read_steps(head.splitlines()[0].removeprefix("# passes: ")):
        module = step.change(module)
    assert alpha_equal(relay.parse(expected), module)


@pytest.mark.parametrize("path", [p for p in CASES if p.stem != "quantize_nodes"], ids=lambda p: p.stem)
def test_passes_are_idempotent(path: Path) -> None:
    """Each pass changes nothing of what it gave; `quantize_nodes` keeps products for their derivatives."""
    head = path.read_text(encoding="utf-8").partition(RULE)[0]
    module = relay.parse(head, path.name)
    for step in read_steps(head.splitlines()[0].removeprefix("# passes: ")):
        module = step.change(module)
        assert alpha_equal(module, step.change(module)), step.name


def test_every_pass_has_an_example() -> None:
    shown = set()
    for path in CASES:
        passes = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# passes: ")
        shown |= {step.name.partition("{")[0] for step in read_steps(passes)}
    assert shown >= set(PASSES) - {"expand_composites"}  # no operator that comes with Relay needs it
