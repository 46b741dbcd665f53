"""The types of decorated functions for Python's type checkers: they take what the Python function takes.

`R` is the form of the result, as far as a transformation decides it; arrays are `Any`, since Relay checks their dtypes
and shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

from relay.api.function import RelayFunction
from relay.calling.lowering import Lowering
from relay.calling.programs.program_table import Explanation

P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:  # at run time it is a RelayFunction

    class Decorated(RelayFunction, Generic[P, R]):
        """A decorated function, or what a transformation such as `relay.grad` makes of one."""

        def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...
        def interpret(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...
        def lower(self, *arguments: P.args, **keywords: P.kwargs) -> Lowering: ...
        def explain(self, *arguments: P.args, **keywords: P.kwargs) -> Explanation: ...


class Decorator(Protocol):
    """A call such as `relay(static_argnames=..)`, which decorates."""

    def __call__(self, function: Callable[P, Any], /) -> Decorated[P, Any]: ...
