"""Options: what may be written in `@relay(..)`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.vta.target import names_target
from relay.compilation.stages import DEFAULT_LEVEL, check_target
from relay.errors import CompileError
from relay.ir.definition import MISSING
from relay.transform.pipeline import LEVELS
from relay.transform.precision.mixed_precision import SHORT

FULL = "float32"
"""The precision of programs that compute as they are written."""


@attrs.frozen(eq=False)
class Options:
    """Settings of how a function is compiled. Raises CompileError for an unknown target or level."""

    target: str = "cpu"
    opt_level: int = DEFAULT_LEVEL
    static_argnames: str | Sequence[str] = ()
    dynamic: bool | None = None  # sizes are symbolic: from the second size on; True: from the first; False: never
    pure: bool = False  # effects are refused
    donate_argnames: str | Sequence[str] = ()
    donate_argnums: int | Sequence[int] = ()
    fallback: str | None = None  # what runs a program that cannot be compiled; None: as RELAY_FALLBACK says
    check: str | None = None  # what is checked in results of compiled calls
    precision: str = FULL  # in which products and convolutions compute
    schedule: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)  # of the kernels that compute named values

    def __attrs_post_init__(self) -> None:
        check_target(self.target)
        if self.opt_level not in range(len(LEVELS)):
            raise CompileError(f"there is no opt_level {self.opt_level!r}; they are 0 to {len(LEVELS) - 1}")
        if self.dynamic not in (None, True, False):
            raise CompileError(
                f"dynamic is {self.dynamic!r}",
                help="write dynamic=True for symbolic sizes from the first call on, or dynamic=False for none",
            )
        if names_target(self.target):
            if self.dynamic:
                raise CompileError(
                    f"programs for the target {self.target!r} have no symbolic sizes: leave dynamic=True out"
                )
            object.__setattr__(self, "dynamic", False)
        if self.fallback not in (None, *FALLBACKS):
            raise CompileError(f"there is no fallback {self.fallback!r}", help=f"it is one of {_word_list(FALLBACKS)}")
        if self.check not in (None, *CHECKS):
            raise CompileError(f"there is no check {self.check!r}", help=f"it is {_word_list(CHECKS)}")
        if self.check is not None and (self.donate_argnames != () or self.donate_argnums != ()):
            raise CompileError(
                "a checked call reads its arguments again, so it cannot donate them",
                help="leave out `check`, or donate_argnames and donate_argnums",
            )
        if self.precision not in (FULL, *SHORT):
            help = f"it is one of {_word_list((FULL, *SHORT))}"
            raise CompileError(f"there is no precision {self.precision!r}", help=help)
        if not isinstance(self.schedule, Mapping) or not all(isinstance(s, Mapping) for s in self.schedule.values()):
            help = 'write schedule={"y": {"tile": (8, 32)}}'
            raise CompileError(
                f"a schedule is a dict of the options of relay.schedule by name: {self.schedule!r}", help=help
            )
        for name in ("static_argnames", "donate_argnames"):
            given = getattr(self, name)
            names = given if isinstance(given, Sequence) else (None,)
            if not all(isinstance(n, str) for n in names):
                raise CompileError(f"{name} are names of parameters, found {given!r}", help=f'write {name}=("n",)')

    @property
    def interprets(self) -> bool:
        """True if the interpreter runs what cannot be compiled. Raises CompileError for a wrong RELAY_FALLBACK."""
        chosen = self.fallback
        if chosen is None:
            chosen = os.environ.get("RELAY_FALLBACK", "").strip() or FALLBACKS[0]
            if chosen not in FALLBACKS:
                raise CompileError(f"RELAY_FALLBACK is {chosen!r}", help=f"set it to one of {_word_list(FALLBACKS)}")
        return chosen == FALLBACKS[1]


CHECKS = ("nan",)
"""The checks of results that exist."""

FALLBACKS = ("error", "interpret")
"""The behavior of a call that cannot be compiled: it raises, or the interpreter runs the program."""


def _word_list(words: Sequence[str]) -> str:
    return " and ".join(map(repr, words))


def options(written: Mapping[str, Any]) -> Options:
    """The options written in `@relay(..)`; MISSING where a value is not known. Raises CompileError for an unknown
    option."""
    known = [field.name for field in attrs.fields(Options)]
    for name in written:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            help = f"did you mean {close[0]!r}?" if close else f"its options are {', '.join(known)}"
            raise CompileError(f"@relay has no option {name!r}", help=help)
    return Options(**{name: value for name, value in written.items() if value is not MISSING})


__all__ = ["Options", "options"]
