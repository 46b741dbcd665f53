"""Mistakes that types and shapes tell, and several mistakes at once: `cases/types*.test` and `several*.test`.

Every function of a program is checked at its annotations, as by `relay check`; what they leave open stays open.
"""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import NAMES, Case, all_cases, verify

import relay
from relay.errors import RelayError, combine_errors
from relay.frontend.lower import lower_text
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly

Option = relay.Option
Tree = relay.Tree

NAMES_OF_TYPES: dict[str, object] = NAMES | {
    "relay": relay,
    "np": np,
    "Option": Option,
    "Tree": Tree,
    "List": relay.List,
    "Int64": relay.Int64,
    "Scalar": relay.Tensor[relay.Float, ()],
    "PureFn": relay.PureFn,
    "Forall": relay.Forall,
    "A": relay.type_var("A"),
    "NCHW": relay.NCHW,
    "NHWC": relay.NHWC,
    "HWIO": relay.HWIO,
    "TABLE": np.zeros((2, 3), np.float32),
}


def check(text: str, filename: str) -> None:
    """Check all functions of a text. Raises their errors together."""
    errors = []
    for definition in lower_text(text, filename, NAMES_OF_TYPES).values():
        try:
            scheme(definition)
        except SchemeOnly:
            pass  # only a call's shapes can tell the rest
        except RelayError as error:
            errors.append(error)
    if errors:
        raise combine_errors(errors)


@pytest.mark.parametrize("case", [*all_cases("types*.test"), *all_cases("several*.test")])
def test_type_errors(case: Case) -> None:
    verify(case, check)


def test_there_is_a_last_mistake() -> None:
    text = "def f(x: Tensor[Float, (2,)]):\n" + "    y = x[5]\n" * 300 + "    return x\n"
    with pytest.raises(relay.ShapeError) as caught:
        check(text, "many.py")
    assert len(caught.value.diagnostics) == 100
