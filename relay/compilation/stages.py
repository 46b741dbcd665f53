"""Compilation stages after elaboration: from a typed program to the core, and to native code.

typed --specialize, structure, prepare, differentiate, optimize--> core --codegen--> program
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from relay.codegen.cuda import target as cuda
from relay.codegen.cuda.driver import cuda_version, open_gpu
from relay.codegen.runtime.native import unused_donations
from relay.codegen.runtime.native_stacks import with_room
from relay.codegen.vta.target import names_target, parse_target
from relay.compilation.recursion_forms import MOST_OBJECTS, STEP, are_many, has_levels, takes_recursive_data
from relay.errors import REPORT, CompileError, InternalError, RelayWarning, TypeMismatch, bugs_of
from relay.eval.values import Data, Reference
from relay.ir.debugging.source_names import SourceNames
from relay.ir.definition import Definition
from relay.ir.expr import Breakpoint, Function, Module
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.traverse import walk
from relay.ir.types import Type
from relay.support import progress
from relay.support.gc_pause import without_collection
from relay.support.locks import Lock, compiling
from relay.support.phases import PhaseTimes, recorded_phases
from relay.text.printer import to_text
from relay.transform.core.call_places import place_at_calls
from relay.transform.pipeline import PREPARATION, Pipeline
from relay.typecheck.elaboration.closures.returned_functions import holds_functions

if TYPE_CHECKING:
    from relay.codegen.cuda.compiler import MachineCode
    from relay.codegen.cuda.host_program import HostProgram
    from relay.codegen.lowering.probes import Probes
    from relay.codegen.runtime.cpu import Program
    from relay.codegen.runtime.native import NativeModule
    from relay.codegen.vta.offloading.stream_calls import StreamCall
    from relay.codegen.vta.offloading.streams import OffloadedModule

log = logging.getLogger("relay.compile")

DEFAULT_LEVEL = 2
"""The optimization level of a call."""


CPU = "cpu"
"""The target that is the processor. The others are the accelerator VTA, for layers that are quantized, and GPUs."""


def check_target(target: object) -> None:
    """Raise CompileError for a target that there is not."""
    if target == CPU:
        return
    if cuda.names_target(target):
        cuda.parse_target(str(target))
        return
    if not names_target(target):
        raise CompileError(f"there is no target {target!r}; programs run on 'cpu', 'cuda' and 'vta'")
    parse_target(str(target))


INSTEAD = (
    f"{REPORT}; until then the interpreter runs it: `f.interpret(..)`,\n"
    'or calls of a function that is decorated with `@relay(fallback="interpret")`, or with RELAY_FALLBACK=interpret'
)
"""The help for users about a program that cannot be compiled."""


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
    source_names: SourceNames | None = None  # what the user's names mean in the typed program
    used: Sequence[Definition] = ()  # the decorated functions in it
    defunctionalized: bool = False  # functions in what it returns are values of data types
    target: str = CPU
    whole: CompiledSignature | None = None  # of the form for calls on few objects, the one for all (`recursion_forms`)
    phases: PhaseTimes = attrs.field(factory=PhaseTimes)  # how long elaboration and passes took
    _lock: Any = attrs.field(factory=Lock)
    _made: dict[str, Any] = attrs.field(factory=dict)
    _uses: list[int] = attrs.field(factory=lambda: [0])

    @property
    def uses(self) -> int:
        """The number of times that the native program has run to its end. Calls of several threads at once may be
        counted as one."""
        return self._uses[0]

    @property
    def seconds(self) -> float | None:
        """The seconds that it took to make the native program, or to read it from disk, in all of its forms; None if
        there is none yet."""
        few: CompiledSignature | None = self._made.get("few objects")
        own: float | None = self._made.get("seconds")
        if few is None or few.seconds is None:
            return own
        return few.seconds + (own or 0.0)

    @property
    def is_symbolic(self) -> bool:
        """True if the program serves more than one size."""
        return bool(symbolic_dims(self.typed))

    @property
    def is_for_gpu(self) -> bool:
        """True if the program runs on a GPU."""
        return cuda.names_target(self.target)

    @property
    def chooses_functions(self) -> bool:
        """True if the result holds functions that are selected at run time, so that a call of one has to select
        again."""
        return self.returned is None and not self.defunctionalized and holds_functions(self.result)

    def refuse_functions(self) -> None:
        """Raise TypeMismatch if the result holds functions: standalone programs cannot return them."""
        if self.returned is not None or holds_functions(self.result):
            entry = self.typed.main
            raise TypeMismatch(
                f"{entry.name} returns a function, which a compiled program by itself cannot",
                entry.span,
                help=f"compile a decorated function that calls {entry.name} and returns what it computes",
            )

    @property
    def user_program(self) -> Module:
        """The typed program, with errors of the library at the calls of the user's."""
        if "user program" not in self._made:
            self._made["user program"] = place_at_calls(self.typed)
        return self._made["user program"]  # type: ignore[no-any-return]

    @property
    def core(self) -> Module:
        """The differentiated and optimized first-order program."""
        with self._lock:
            return self._core()

    def _core(self) -> Module:
        if "core" not in self._made:
            with recorded_phases() as phases:
                self._made["core"] = to_core(self.user_program, self.level, () if self.whole is None else (STEP,))
            self.phases.include(phases)
        core: Module = self._made["core"]
        return core

    def take_core(self, core: Module) -> None:
        """Let this be the first-order program, instead of what would be made of the typed one."""
        with self._lock:
            self._made["core"] = core

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

    def probed_program(self, core: Module, probes: Probes | None) -> Program:
        """A native program of this core, compiled again, with these probes in it. Raises as `program`."""
        from relay.codegen.runtime import cpu

        with self._lock, without_collection():
            return with_room(lambda: cpu.Program(self._native(core, probes), Data, Reference))

    def _native(self, core: Module, probes: Probes | None) -> NativeModule:
        """The machine code of a core."""
        from relay.codegen.runtime import cpu
        from relay.compilation import tuning_records

        threads = cpu.default_threads()
        devices: Mapping[str, StreamCall] | None = None
        if self.target != CPU:
            offloaded = self._offload(core)
            core, devices = offloaded.host, offloaded.streams
        donated = frozenset(n for n, p in enumerate(self.typed.main.parameters) if p.name in self.donated)
        return cpu.compile_native(core, threads, tuning_records.choices(threads), donated, devices, probes)

    def _compile(self) -> Program:
        self.warn_of_breakpoints()
        if self.is_for_gpu:
            return self._compile_for_gpu()
        with compiling:  # a copy of the process has nothing that is half imported
            from relay.codegen.runtime import cpu
            from relay.compilation import disk_cache, tuning_records

        threads = cpu.default_threads()
        choices = tuning_records.choices(threads)
        parameters = self.typed.main.parameters
        donated = frozenset(n for n, parameter in enumerate(parameters) if parameter.name in self.donated)

        def compile_core() -> NativeModule:
            native = self._native(self._core(), None)
            if disk_cache.is_verified():
                with compiling:
                    from relay.compilation import verification

                verification.verify(self._core(), native, threads)
            return native

        native = disk_cache.native(
            self.typed,
            self.level,
            threads,
            choices,
            compile_core,
            donated,
            self.target if self.whole is None else f"{self.target}, few objects",
        )
        if unused := unused_donations(native, parameters, donated):
            log.warning("%s: no result is made in the memory of %s", self.typed.main.name, ", ".join(unused))
        return cpu.Program(native, Data, Reference, self._uses)

    def _compile_for_gpu(self) -> Program:
        with compiling:
            from relay.codegen.cuda import program, program_file
            from relay.compilation import disk_cache

        architecture, version = cuda.parse_target(self.target), cuda_version()

        def compile_core() -> tuple[HostProgram, MachineCode]:
            return program.program_parts(self._core(), architecture)

        if version is None:
            parts = compile_core()
        else:
            parts = disk_cache.for_gpu(self.typed, self.level, compile_core, architecture.name, version, program_file)
        made: Any = program.CudaProgram(*parts, architecture, Data, Reference, self._uses)
        return made  # type: ignore[no-any-return]

    def warn_of_breakpoints(self) -> None:
        """A program that is not run by the debugger passes its breakpoints: a RelayWarning says so, once."""
        if "breakpoints" in self._made:
            return
        found = self._made["breakpoints"] = _breakpoint_in(self.typed)
        if found is not None:
            name = self.typed.main.name
            warnings.warn(
                f"{found.span}: relay.breakpoint() stops in the debugger only: relay.debug.step({name}, ..)",
                RelayWarning,
                stacklevel=3,
            )

    @property
    def offloaded_module(self) -> OffloadedModule:
        """The optimized program with functions for the accelerator's streams. Raises CompileError as `offload`."""
        with self._lock:
            return self._offload(self._core())

    def _offload(self, core: Module) -> OffloadedModule:
        with compiling:
            from relay.codegen.vta.offloading.offload import offload

        return offload(core, parse_target(self.target))

    def for_target(self, target: str) -> CompiledSignature:
        """The same program for a target."""
        if target == self.target:
            return self
        made = {name: self._made[name] for name in ("core",) if name in self._made}
        return attrs.evolve(self, target=target, lock=Lock(), made=made, uses=[0])

    def for_values(self, values: Sequence[object]) -> CompiledSignature:
        """The same program in the form that serves a call with these run-time values: with recursions over data level
        by level only for many objects, as long as no call has had many (`recursion_forms`)."""
        with self._lock:
            if not self._may_have_levels() or "program" in self._made or "failure" in self._made:
                return self
            few: CompiledSignature | None = self._made.get("few objects")
            if are_many(values):
                if few is None or few.most_objects is None:
                    return few or self
                with without_collection():
                    if with_room(lambda: has_levels(self.typed, self.level)):
                        return self
                few._made["serves all"] = True
            elif few is None:
                few = attrs.evolve(self, whole=self, lock=Lock(), made={}, uses=self._uses)
                self._made["few objects"] = few
            return few

    def _may_have_levels(self) -> bool:
        """True if it takes recursive data, so that there may be two forms."""
        if "two forms" not in self._made:
            types = [parameter.type for parameter in self.typed.main.parameters]
            with_levels = STEP in PREPARATION[self.level] and not self.is_for_gpu and self.whole is None
            self._made["two forms"] = with_levels and bool(self.typed.data) and takes_recursive_data(types)
        found: bool = self._made["two forms"]
        return found

    @property
    def most_objects(self) -> int | None:
        """The largest number of objects that a call of this form may pass; None if there is no other form for more."""
        return None if self.whole is None or "serves all" in self._made else MOST_OBJECTS

    def with_core(self, core: Module) -> CompiledSignature:
        """The same with another first-order program, which is not compiled yet."""
        return attrs.evolve(self, lock=Lock(), made={"core": core}, uses=[0])

    def on_gpu(self) -> CompiledSignature:
        """The same program for the GPU that there is, the same each time."""
        if self.is_for_gpu:
            return self
        with self._lock:
            if "on gpu" not in self._made:
                self._made["on gpu"] = self.for_target(f"cuda, arch={open_gpu().architecture}")
            made: CompiledSignature = self._made["on gpu"]
            return made

    def with_native(self, program: Program) -> CompiledSignature:
        """The same with another native program."""
        return attrs.evolve(self, lock=Lock(), made={**self._made, "program": program}, uses=[0])

    def forget_program(self) -> None:
        """Let the next call generate code again."""
        with self._lock:
            for name in ("program", "failure", "few objects"):
                self._made.pop(name, None)


def _breakpoint_in(module: Module) -> Breakpoint | None:
    """The first breakpoint of a program."""
    bodies = (function.body for function in module.functions.values() if isinstance(function, Function))
    values = (binding.value for body in bodies for binding in walk(body))
    return next((value for value in values if isinstance(value, Breakpoint)), None)


def lowering(level: int, without: Collection[str] = ()) -> Pipeline:
    """All passes from a typed program to the first-order, differentiated, optimized one, without some."""
    return Pipeline.for_level(level, progress=progress.show_progress, without=without)


def at_stage(typed: Module, stage: str, level: int, is_derivative: bool = False) -> Module:
    """A typed program at a stage: "typed", "core", "optimized", or as kernels. That of a derivative is its code,
    forward and backward part, at the stage "typed" too, where there would be nothing but a `grad`."""
    match stage:
        case "typed" if is_derivative:
            return Pipeline.for_level(level, ("lower", "prepare", "differentiate", "between"))(typed)
        case "typed":
            return typed
        case "core":
            return lowering(0)(typed)
        case "optimized":
            return lowering(level)(typed)
        case _:
            from relay.transform.fusion.outlining import fuse

            return fuse(lowering(level)(typed))


def derivative_text(typed: Module, elide: bool = True) -> str:
    """The code of a derivative, simplified, its names and lines as the source has them, without the elements of large
    constants if they are elided."""
    with bugs_of("the text of a derivative", lambda: typed.main.span):
        return to_text(at_stage(typed, "typed", DEFAULT_LEVEL, is_derivative=True), elide=elide, sources=True)


def to_core(typed: Module, level: int, without: Collection[str] = ()) -> Module:
    """The first-order, differentiated, optimized program of a typed one, made without some passes. Raises CompileError
    for one that is nested too deeply."""
    try:
        with bugs_of("a pass over the program", lambda: typed.main.span):
            return lowering(level, without)(typed)
    except InternalError as error:
        if not isinstance(error.__cause__, RecursionError):
            raise
        raise CompileError(
            f"the blocks of {typed.main.name} are nested too deeply",
            typed.main.span,
            help="move inner blocks into functions, or write what repeats as a loop",
        ) from None
