"""The making of programs: those of one function, for the arguments of calls.

    definition --elaborate--> typed --specialize, .., differentiate, optimize--> core --codegen--> program

A call that no program of the table serves gets one with symbolic sizes, where sizes have varied and the function allows
it, and otherwise one for its own sizes; what later phases refuse is dropped, and made for each size.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import attrs

from relay.calling.arguments import ArgumentDescription
from relay.calling.closure_selection import defunctionalized_module, needs_defunctionalization
from relay.calling.closures import ClosureOwner, Result, result_of
from relay.calling.parameters import differentiated_positions, has_annotated_sizes
from relay.calling.programs.program_table import Compilation, Lists, ProgramTable
from relay.calling.programs.shape_policy import axes, refuse_sizes
from relay.codegen.runtime.native_stacks import with_room
from relay.compilation.options import FULL, Options
from relay.compilation.stages import CompiledSignature
from relay.errors import CompileError, RelayError, bugs_of
from relay.frontend.scope import SnapshotScope
from relay.ir.definition import Definition, DerivedDefinition, primal
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place, symbolic_dims
from relay.ir.types import SymbolicSize
from relay.operator import Undetermined
from relay.support.gc_pause import without_collection
from relay.support.locks import Lock, compiling
from relay.support.phases import PhaseTimes, phase, recorded_phases
from relay.transform.core.derivative_orders import check_orders
from relay.transform.fusion.named_schedules import schedule_bindings
from relay.transform.precision.mixed_precision import to_mixed_precision
from relay.typecheck.elaboration import Argument, Elaborated, elaborate_structured, load, scheme
from relay.typecheck.elaboration.argument_sources import Places

log = logging.getLogger("relay.compile")


class FunctionOwner(ClosureOwner, Protocol):
    """The decorated function whose programs are made."""

    __relay__: Definition | DerivedDefinition


@attrs.frozen(eq=False)
class FunctionCompiler:
    """Finds the programs of a function in its table, or makes them. `donated`: the names of parameters whose memory
    results may take."""

    owner: FunctionOwner
    table: ProgramTable
    options: Options
    donated: frozenset[str]
    lock: Any = attrs.field(factory=Lock)
    used: set[Definition] = attrs.field(factory=set)  # the decorated functions in the programs

    def serve(
        self, given: list[ArgumentDescription], symbolic: bool
    ) -> tuple[list[ArgumentDescription], CompiledSignature]:
        """The arguments of a call, of which those are static whose values its program needs, and the program.
        `symbolic`: it may have symbolic sizes. Raises the user's mistakes."""

        def make(key: tuple[object, ...], types: list[Argument], places: Places) -> CompiledSignature:
            found = self._of_examples(key, types, places, symbolic) or self._of_any_length(key, types, places, symbolic)
            return found or self._find_or_make(key, types, places, symbolic)

        with compiling:
            load()
        with self.lock:
            described = self.table.with_static(given)
            found = self.table.exact.get(tuple(d.key for d in described))
            if found is not None:  # another thread has made it
                return described, found
            with without_collection():
                return with_room(lambda: self.table.configured_call(given, self._elaborate, make))

    def program_of_any_size(self, given: list[ArgumentDescription]) -> tuple[CompiledSignature, dict[Place, int]]:
        """A program for all sizes of these arguments, if there is one, else for theirs, which is not put in the table;
        and the sizes of
        their axes."""
        with compiling:
            load()
        with self.lock, without_collection():
            described = with_room(lambda: self.table.settled_arguments(given, self._elaborate))
            types = [d.argument for d in described]
            places = axes(types)
            found = with_room(lambda: self._make_symbolic((), types, set(places), Places())[0])
            if found is None or not self._takes_sizes(functools.partial(getattr, found, "core")):
                found = with_room(lambda: self._make((), types, Places()))
        return found, places

    def reload(self) -> None:
        """Read the captured values of the programs' functions again, when they are used next."""
        for definition in self.used:
            if isinstance(definition.scope, SnapshotScope):
                definition.scope.reload()
        self.used.clear()

    @property
    def lists(self) -> Lists:
        """The parameters whose lists are of examples, and those that keep their lengths."""
        definition = self.owner.__relay__
        signature = primal(definition).function.signature
        of_examples = frozenset(n for n, said in enumerate(signature) if said.of_examples)
        return Lists(of_examples, frozenset(differentiated_positions(definition)))

    def _elaborate(self, arguments: Sequence[Argument], symbolic: Collection[Place], places: Places) -> Elaborated:
        return elaborate_structured(self.owner.__relay__, arguments, symbolic, places)

    def _find_or_make(
        self, key: tuple[object, ...], arguments: Sequence[Argument], places: Places, symbolic: bool
    ) -> CompiledSignature:
        """A symbolic program that is for these arguments, or a new program."""
        table = self.table
        found = table.find(key, arguments, symbolic)
        for lowered, refusal in found.refusals:
            log.info(
                "the program of %s for sizes %s does not apply: %s", self.owner.__name__, _sizes(lowered.typed), refusal
            )
        if found.compiled is not None:
            return found.compiled
        reason, varying = table.reason(key), table.varying_axes(key, arguments, symbolic, bool(self.options.dynamic))
        start = time.perf_counter()
        found_symbolic, pins = self._make_symbolic(key, arguments, varying, places) if varying else (None, ())
        made = self._make(key, arguments, places) if found_symbolic is None else found_symbolic
        seconds = time.perf_counter() - start
        compilation = Compilation(reason, seconds, pins, is_symbolic=found_symbolic is not None, counts=symbolic)
        table.add(key, arguments, made, compilation)
        return made

    def _of_any_length(
        self, key: tuple[object, ...], arguments: Sequence[Argument], places: Places, symbolic: bool
    ) -> CompiledSignature | None:
        """A program for lists of any length, after a call with another length; None if it needs the length."""
        if self.donated or self.options.dynamic is False:
            return None
        general = self.table.with_any_length(key, arguments, self.lists)
        if general is None:
            return None
        found = self._of_lists(*general, places, symbolic)
        if found is not None:
            self.table.exact[key] = found
        return found

    def _of_examples(
        self, key: tuple[object, ...], arguments: Sequence[Argument], places: Places, symbolic: bool
    ) -> CompiledSignature | None:
        """A program for lists of examples of any length and of any sizes; None if the call has no such lists, or the
        program needs the length."""
        if self.donated or self.options.dynamic is False:
            return None
        general = self.table.with_examples(key, arguments, self.lists)
        return None if general is None else self._of_lists(*general, places, symbolic)

    def _of_lists(
        self, key: tuple[object, ...], arguments: Sequence[Argument], places: Places, symbolic: bool
    ) -> CompiledSignature | None:
        """A program for lists of any length; None if it needs the length."""
        try:
            return self.table.exact.get(key) or self._find_or_make(key, arguments, places, symbolic)
        except (RelayError, SymbolicSize, Undetermined) as error:
            reason = error.message if isinstance(error, RelayError) else str(error)
            log.warning("recompiling %s for every new length of its lists: %s", self.owner.__name__, reason)
            self.table.fix_lengths(key)
            return None

    def _make(self, key: tuple[object, ...], arguments: Sequence[Argument], places: Places) -> CompiledSignature:
        log.info("compiling %s for %s", self.owner.__name__, key)
        with recorded_phases() as phases, phase("type checking"):
            made = self._elaborate(arguments, (), places)
        if has_annotated_sizes(primal(self.owner.__relay__).function):
            self._refuse_sizes(arguments)
        return self._lower_elaborated(made, phases)

    def _lower_elaborated(self, made: Elaborated, phases: PhaseTimes) -> CompiledSignature:
        with bugs_of("type inference", lambda: primal(self.owner.__relay__).function.span):
            lowered = self._make_lowered(made)
        lowered.phases.include(phases)
        return lowered

    def _make_lowered(self, made: Elaborated) -> CompiledSignature:
        returned, effects = _functions(made)
        opens = needs_defunctionalization(made)
        if opens:
            made = attrs.evolve(made, module=defunctionalized_module(made, self.owner, effects))
        lowered = CompiledSignature(
            self._with_options(made.module),
            made.result,
            self.options.opt_level,
            self.donated,
            made.parameters,
            returned,
            effects,
            made.source_names,
            made.used,
            opens,
            self.options.target,
        )
        if not lowered.chooses_functions:
            check_orders(made.module)
        self.used.update(made.used)
        return lowered

    def _with_options(self, module: Module) -> Module:
        """A typed program with the precision and the schedules that the function's options say."""
        if self.options.schedule:
            module = schedule_bindings(module, self.options.schedule)
        if self.options.precision != FULL:
            module = to_mixed_precision(module, self.options.precision)  # type: ignore[arg-type]
        return module

    def _refuse_sizes(self, arguments: Sequence[Argument]) -> None:
        """Raise ShapeError if the function's type does not allow a call's sizes."""
        try:
            general = scheme(self.owner.__relay__).module
        except (RelayError, Undetermined):
            return  # it has no type for all sizes; for these it has one
        refuse_sizes(self.owner.__name__, general, arguments)

    def _make_symbolic(
        self, key: tuple[object, ...], arguments: Sequence[Argument], varying: set[Place], places: Places
    ) -> tuple[CompiledSignature | None, tuple[str, ...]]:
        """A program in which these axes are symbolic, None if all of them became numbers; and which did, and why."""
        try:
            with recorded_phases() as phases, phase("type checking"):
                made = self._elaborate(arguments, varying, places)
        except (RelayError, SymbolicSize, Undetermined) as error:
            reason = error.message if isinstance(error, RelayError) else str(error)
            log.info("%s has no program for symbolic sizes: %s", self.owner.__name__, reason)
            return None, ()
        pins = []
        for pin in made.pins:
            place = f", at {pin.span}" if pin.span is not None else ""
            pins.append(f"{pin.name} = {pin.value}: {pin.reason}{place}")
            log.info("%s: the size %s is %s: %s%s", self.owner.__name__, pin.name, pin.value, pin.reason, place)
        if not symbolic_dims(made.module):
            return None, ()
        if needs_defunctionalization(made):
            log.info(
                "%s has no program for symbolic sizes: the functions that it returns are selected at run time",
                self.owner.__name__,
            )
            return None, ()
        log.info("compiling %s for %s with sizes %s", self.owner.__name__, key, _sizes(made.module))
        return self._lower_elaborated(made, phases), tuple(pins)

    def lowers(self, lowered: CompiledSignature, phases: Callable[[], object]) -> bool:
        """True if the later phases take a program's symbolic sizes. A program that they do not take is dropped."""
        if self._takes_sizes(phases):
            return True
        with self.lock:
            self.table.fix_sizes(lowered)
        return False

    def _takes_sizes(self, phases: Callable[[], object]) -> bool:
        """True if later phases take a program's symbolic sizes; why not is logged."""
        try:
            phases()
        except (CompileError, SymbolicSize, Undetermined) as error:
            place = f", at {error.span}" if isinstance(error, RelayError) and error.span is not None else ""
            reason = error.message if isinstance(error, RelayError) else str(error)
            log.warning("recompiling %s for every new shape: %s%s", self.owner.__name__, reason, place)
            return False
        return True


def _functions(made: Elaborated) -> tuple[Result | None, frozenset[str]]:
    """The description of functions in a result, for `CompiledSignature`."""
    returned = None if made.returned is None else result_of(made.returned, made.result)
    return returned, frozenset(effect.kind for effect in made.effects) | made.effects_of_functions


def _sizes(module: Module) -> str:
    return ", ".join(str(dim) for dim in symbolic_dims(module))
