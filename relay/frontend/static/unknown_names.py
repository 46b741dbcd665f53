"""Unknown values: placeholders for names that static reading of a file cannot resolve."""

from __future__ import annotations

import attrs

from relay.errors import Span
from relay.typecheck.elaboration.abstract_values import DependsOnPoison


class UnknownNameError(DependsOnPoison):
    """A function mentions a name that only importing the file can resolve, or one whose own mistake is reported."""

    def __init__(self, outside: UnknownValue) -> None:
        super().__init__(outside.name)
        self.outside = outside


@attrs.frozen(eq=False)
class UnknownValue:
    """Stands for what a name means that reading alone does not tell. Whoever asks what it is gets OutsideName."""

    name: str
    mistaken: bool = False  # its mistake is reported
    span: Span | None = None  # where the name gets its value
    reason: str | None = None  # why reading does not tell
    is_early: bool = False  # its file is still being read, and may give it a value

    @property
    def __relay__(self) -> object:
        raise UnknownNameError(self)

    __relay_type__ = __relay_data__ = __relay__
