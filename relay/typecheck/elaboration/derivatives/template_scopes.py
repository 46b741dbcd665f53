"""The names that the text of a template sees."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from relay.ir.definition import MISSING, Scope
from relay.ir.intrinsic import Intrinsic


@attrs.frozen(eq=False)
class TemplateScope(Scope):
    """The names that a template's code sees."""

    found: Mapping[str, object]

    def resolve(self, name: str) -> object:
        """The object that a name means."""
        return Intrinsic(name) if name in STRUCTURAL else self.found.get(name, MISSING)

    def names(self) -> list[str]:
        """All names."""
        return [*self.found, *STRUCTURAL]


STRUCTURAL = (
    *("dot__", "blank__", "pick__", "leaves__", "merge__", "lists__", "listed__"),
    *("floats__", "often__", "partial__", "quiet__", "axes__", "tensor__", "by__", "unstacked__", "labeled__"),
    *("front__", "extent__", "row__", "blank_rows__", "numbered__", "back__", "within_axis__", "axis_range__"),
    *("with_key__", "with_params__", "init_params__"),
)
"""The structural operations."""
