"""Programs that the checker must refuse, and where: `cases/language*.test`, as in `test_error_files.py`."""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import NAMES, Case, all_cases, verify

import relay
from relay.frontend.lower import lower_text
from relay.typecheck.elaboration import elaborate


def check_types(text: str, filename: str) -> object:
    """Check every function of a text whose parameters are all annotated."""
    definitions = lower_text(text, filename, {**NAMES, "relay": relay, "np": np})
    checked = [d for d in definitions.values() if all(p.type is not None for p in d.function.parameters)]
    return [elaborate(d, [None] * len(d.function.parameters)) for d in checked]


@pytest.mark.parametrize("case", all_cases("language*.test"))
def test_language_errors(case: Case) -> None:
    verify(case, check_types)


def test_annotations_are_arguments() -> None:
    with pytest.raises(relay.RelayError):
        check_types("def f(x: float):\n    return x.nothing\n", "f.py")
