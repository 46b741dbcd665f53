"""Compilation stages after elaboration: from a typed program to the core, and to native code.

typed --specialize, structure, prepare, differentiate, optimize--> core --codegen--> program
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from relay.ad import reverse
from relay.codegen.runtime.native import unused_donations
from relay.codegen.runtime.native_stacks import with_room
from relay.errors import REPORT, CompileError, InternalError, TypeMismatch, bugs_of
from relay.eval.values import Data, Reference
from relay.ir.expr import Module
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.types import Type
from relay.support import progress
from relay.support.gc_pause import without_collection
from relay.support.locks import Lock
from relay.text.printer import to_text
from relay.transform.pipeline import BETWEEN, LEVELS, PREPARATION, Pipeline, simplify_derivative
from relay.typecheck.elaboration.closures.returned_functions import holds_functions

if TYPE_CHECKING:
    from relay.codegen.runtime.cpu import Program
    from relay.codegen.runtime.native import NativeModule

log = logging.getLogger("relay.compile")

DEFAULT_LEVEL = 2
"""The optimization level of a call."""


INSTEAD = (
    f"{REPORT}; until then the interpreter runs it: `f.interpret(..)`,\n"
    'or calls of a function that is decorated with `@relay(fallback="interpret")`, or with RELAY_FALLBACK=interpret'
)
"""What users can do about a program that cannot be compiled."""


class ResultBuilder(Protocol):
    """Builds the result of a call from the values that the program returns (`relay.calling.closures.Result`)."""

    def __call__(self, values: Any, maker: Any, interpreted: bool = False) -> Any: ...


@attrs.frozen(eq=False)
class CompiledSignature:
    """One signature of a function: its typed program, and what the later phases made of it."""

    typed: Module
    result: Type  # with the Python structures that its tuples stand for
    level: int
    donated: frozenset[str] = frozenset()  # the names of parameters whose memory results may take
    parameters: tuple[Type, ...] = ()  # with the structures that tuples stand for, as `result`
    returned: ResultBuilder | None = None  # what makes functions of what the program returns
    effects: frozenset[str] = frozenset()  # what the program does beside computing, and functions that it returns
    opened: bool = False  # functions in what it returns are values of data types (`chosen_functions.opened_module`)
    _lock: Any = attrs.field(factory=Lock)
    _made: dict[str, Any] = attrs.field(factory=dict)
    _uses: list[int] = attrs.field(factory=lambda: [0])

    @property
    def uses(self) -> int:
        """How often the native program has run to its end. Calls of several threads at once may be counted as one."""
        return self._uses[0]

    @property
    def seconds(self) -> float | None:
        """How long it took to make the native program, or to read it from disk; None if there is none yet."""
        seconds: float | None = self._made.get("seconds")
        return seconds

    @property
    def is_symbolic(self) -> bool:
        """Whether it is for more than one size."""
        return bool(symbolic_dims(self.typed))

    @property
    def chooses_functions(self) -> bool:
        """Whether the result holds functions that are selected at run time, and a call of one has to select anew."""
        return self.returned is None and not self.opened and holds_functions(self.result)

    def refuse_functions(self) -> None:
        """Raise TypeMismatch if the result holds functions: programs that stand alone cannot return them."""
        if self.returned is not None or holds_functions(self.result):
            entry = self.typed.main
            raise TypeMismatch(
                f"{entry.name} returns a function, which a compiled program by itself cannot",
                entry.span,
                help=f"compile a decorated function that calls {entry.name} and returns what it computes",
            )

    @property
    def core(self) -> Module:
        """The differentiated and optimized first-order program."""
        with self._lock:
            return self._core()

    def _core(self) -> Module:
        if "core" not in self._made:
            self._made["core"] = to_core(self.typed, self.level)
        core: Module = self._made["core"]
        return core

    @property
    def program(self) -> Program:
        """The native program."""
        with self._lock:
            if "failure" in self._made:
                failure: InternalError = self._made["failure"]
                raise failure.with_traceback(None)
            if "program" not in self._made:
                with progress.progress_bar(f"compiling {self.typed.main.name}"), without_collection():
                    start = time.perf_counter()
                    try:
                        self._made["program"] = with_room(self._compile)
                        self._made["seconds"] = time.perf_counter() - start
                    except InternalError as error:
                        error.help = INSTEAD
                        self._made["failure"] = error
                        raise
            program: Program = self._made["program"]
            return program

    def _compile(self) -> Program:
        from relay.codegen.runtime import cpu
        from relay.compilation import disk_cache, tuning_records, verification

        threads = cpu.default_threads()
        choices = tuning_records.choices(threads)
        parameters = self.typed.main.parameters
        donated = frozenset(n for n, parameter in enumerate(parameters) if parameter.name in self.donated)

        def compile_core() -> NativeModule:
            native = cpu.compile_native(self._core(), threads, choices, donated)
            if verification.is_enabled():
                verification.verify(self._core(), native, threads)
            return native

        native = disk_cache.native(
            self.typed,
            self.level,
            threads,
            choices,
            compile_core,
            donated,
        )
        if unused := unused_donations(native, parameters, donated):
            log.warning("%s: no result is made in the memory of %s", self.typed.main.name, ", ".join(unused))
        return cpu.Program(native, Data, Reference, self._uses)

    def forget_program(self) -> None:
        """Let the next call generate code anew."""
        with self._lock:
            self._made.pop("program", None)
            self._made.pop("failure", None)


def lowering(level: int) -> Pipeline:
    """All passes from a typed program to the first-order, differentiated, optimized one."""

    def differentiate(module: Module) -> Module:
        return reverse.differentiate(module, lambda derived: simplify_derivative(derived, level))

    steps: list[str | Callable[[Module], Module]] = ["specialize, structure", *PREPARATION[level]]
    steps += [differentiate, *LEVELS[level]]
    return Pipeline(steps, stage="typed", progress=progress.say)


def derivative_text(typed: Module, elide: bool = True) -> str:
    """The code of a derivative, simplified, its names and lines as the source has them, without the elements of large
    constants if they are elided."""

    def differentiate(module: Module) -> Module:
        return reverse.differentiate(module, lambda derived: simplify_derivative(derived, DEFAULT_LEVEL))

    steps: list[str | Callable[[Module], Module]] = ["specialize, structure", *PREPARATION[DEFAULT_LEVEL]]
    steps += [differentiate, *BETWEEN[DEFAULT_LEVEL]]
    with bugs_of("the text of a derivative", lambda: typed.main.span):
        return to_text(Pipeline(steps, stage="typed")(typed), elide=elide, sources=True)


def to_core(typed: Module, level: int) -> Module:
    """The first-order, differentiated, optimized program of a typed one. Raises CompileError for one that is nested too
    deeply."""
    try:
        with bugs_of("a pass over the program", lambda: typed.main.span):
            return lowering(level)(typed)
    except InternalError as error:
        if not isinstance(error.__cause__, RecursionError):
            raise
        raise CompileError(
            f"the blocks of {typed.main.name} are nested too deeply",
            typed.main.span,
            help="move inner blocks into functions, or write what repeats as a loop",
        ) from None
