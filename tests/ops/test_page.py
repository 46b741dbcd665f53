"""The page of operators says what their definitions say."""

from __future__ import annotations

from pathlib import Path

from relay.operator.page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def test_the_page_of_operators_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m relay.operator.page docs/operators.md"


def test_every_operator_that_comes_with_relay_is_on_the_page() -> None:
    text = page()
    for call in ("softmax(x, axis=-1)", "concatenate(tensors, axis=0)", "gelu(x, approximate='none')"):
        assert f"`{call}`" in text
    assert "composite" in text and "linear in x, y" in text and "no gradient: the result is a boolean" in text
