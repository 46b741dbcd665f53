"""Elaboration from the surface IR to the typed IR: inference and monomorphization in one pass.

The body of a function is elaborated once for each choice of its arguments' types. Types are inferred by unification
(`typecheck/unification.py`); what cannot be decided yet is deferred (`checker.py`). The result is monomorphic, still
higher-order, and holds no surface node.

    abstract_values.py     the values of names; abstract_arguments.py those of a program's arguments
    checker.py             the state, of which frame.py and state.py are parts; constraints.py deferred constraints,
                           completion.py the end
    engine.py              the interface of recursion; handlers.py its implementation
    entry.py               programs and schemes, from their entry
    restarts.py            reasons to start again, with what was found out too late
    instances.py           instances of functions; instance_bodies.py new ones, results.py and constant_results.py
                           their results
    expressions/           one case for each node; calls, operators and their attributes, weak integers
    control_flow/          loops, and joins where paths meet
    patterns/              `match`
    values/                kinds of values: tensors, structures, data, functions, sizes, Python objects
    members/               attributes, items and elements of values
    dynamic_lists/         lists of any length
    dynamic_shapes/        data-dependent and symbolic sizes; recursion at other sizes
    library/               functions of Python and NumPy
    derivatives/           `grad` in programs
    closures/              functions that leave a program
    effects/               the effects of calls
    schemes/               the types of functions before any call decides them
    diagnostics/           collection of several mistakes, and messages
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import attrs

from relay.errors import RelayError, TypeCheckError
from relay.ir.axes import ResultNames
from relay.ir.debugging.source_names import SourceNames, collecting
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.effects import Effect
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place
from relay.ir.types import (
    TensorType,
    TupleType,
    Type,
)
from relay.ir.types import axis_names as names_of_axes
from relay.support.locks import compiling
from relay.typecheck.elaboration.abstract_arguments import (
    Argument,
    ClosureArg,
    DataArg,
    ListArg,
    RefArg,
    ScalarArg,
    StaticArg,
    StructureArg,
    holds_returned,
    restore_closures,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures.returned_functions import (
    FunctionChosenAtRunTime,
    Node,
    effects_of,
    holds_functions,
    resolve_node,
    takes_unseen,
)
from relay.typecheck.elaboration.engine import Engine, Scheme
from relay.typecheck.elaboration.library import (  # noqa: F401  (their rules are in the table)
    array_methods,
    builtin_functions,
    dtypes,
    known_texts,
    numpy_names,
    ordering,
    python_builtins,
    relay_functions,
    requirements,
)
from relay.typecheck.elaboration.members import array_attributes  # noqa: F401
from relay.typecheck.elaboration.restarts import ArgumentPlace, Assumptions
from relay.typecheck.guards import DimSpecialization
from relay.typecheck.mapping import erase_names_and_effects
from relay.typecheck.unification import resolve

__all__ = [
    "Argument",
    "ClosureArg",
    "DataArg",
    "Elaborated",
    "ListArg",
    "RefArg",
    "ScalarArg",
    "Scheme",
    "StaticArg",
    "StructureArg",
    "elaborate",
    "elaborate_structured",
    "holds_returned",
    "load",
    "restore_closures",
    "scheme",
]


@functools.cache
def load() -> Engine:
    """The engine that elaboration recurses through. Most of its files are imported when something is first
    elaborated."""
    with compiling:  # a copy of the process has nothing that is half imported
        from relay.typecheck.elaboration import handlers

    return handlers


def scheme(definition: Definition | DerivedDefinition) -> Scheme:
    """The program at its annotations, with variables for what they leave open, and the function's type.

    Unannotated parts of the type are quantified: `forall (bt: BaseType) (s: Shape). fn(..) -> ..`.
    """
    engine = load()
    return engine.elaborate_scheme(engine, definition)


def elaborate(definition: Definition | DerivedDefinition, arguments: Sequence[Argument]) -> Module:
    """The program for these arguments.

    Raises TypeCheckError (FrontendError, DifferentiationError) at the user's line.
    """
    return elaborate_structured(definition, arguments).module


@attrs.frozen
class Elaborated:
    """A program, its result's and parameters' types with the Python structures that tuples stand for, the decorated
    functions in it, the symbolic axes that became numbers or equal to others, and what it does beside computing."""

    module: Module
    result: Type
    parameters: tuple[Type, ...]
    used: list[Definition]
    pins: tuple[DimSpecialization, ...]
    effects: tuple[Effect, ...]
    names: ResultNames = None
    returned: Node | None = None  # the result is what the functions in it have captured; what else is known of it
    effects_of_functions: frozenset[str] = frozenset()  # those of the functions in the result
    source_names: SourceNames | None = None  # what the user's names mean in it


def elaborate_structured(
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: Collection[Place] = (),
    candidates: frozenset[ArgumentPlace] = frozenset(),
) -> Elaborated:
    """The program for these arguments. The axes in `symbolic` stay variables of the program as far as possible: it is
    right for all arguments that have its entry's types and satisfy `Module.where`. Axes of extent 0 and 1 are numbers.

    Parts of an argument count as in `relay.ir.sizes.extents`; arguments that specialize the program count, too.
    `candidates`: numbers of Python among the arguments that may be static; raises ArgumentsSpecialize where some must.
    """
    with collecting() as source_names:
        checker, module, returned = _with_functions(definition, arguments, frozenset(symbolic), candidates)
    used = [i.code for i in checker.module.globals.values() if isinstance(i.code, Definition)]
    entry = checker.module.globals[module.entry]
    result = resolve(entry.result)
    pins, effects = tuple(checker.hints.pins), tuple(entry.effects.all_effects())
    parameters = tuple(erase_names_and_effects(resolve(type_)) for type_ in checker.received)
    inside = effects_of(result)
    return Elaborated(
        module,
        erase_names_and_effects(result),
        parameters,
        used,
        pins,
        effects,
        _names(result),
        returned,
        inside,
        source_names,
    )


def _with_functions(
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place],
    candidates: frozenset[ArgumentPlace],
) -> tuple[Checker, Module, Node | None]:
    """The program, which returns what the functions in its result have captured, if it holds any that are known."""
    mistake: RelayError | None = None
    checker, decisions, is_refused = None, Assumptions(candidates=candidates), False
    engine = load()
    try:
        checker, module = engine.elaborate_program(engine, False, definition, arguments, symbolic, decisions)
        result = checker.module.globals[module.entry].result
        returns_functions = holds_functions(result)
        if not isinstance(definition, Definition) or not (returns_functions or decisions.labeled):
            return checker, module, None
        if returns_functions and takes_unseen(result):
            mistake = TypeCheckError(
                "the parameters of the returned function have no known types", definition.function.span
            )
    except RelayError as error:
        if not isinstance(definition, Definition) or not any(decisions.holding):
            raise
        mistake, is_refused = error, True
    try:
        packing, packed = engine.elaborate_program(
            engine, False, definition, arguments, symbolic, Assumptions(candidates=candidates, returning=True)
        )
        returned = packing.module.globals[packed.entry].returned
        if returned is not None:
            return packing, packed, resolve_node(returned)
        if is_refused:  # no result of the program, but the results of calls in it
            return packing, packed, None
    except FunctionChosenAtRunTime:
        if mistake is not None:
            raise _untyped_function_error(definition, mistake) from None
    except RelayError:
        if mistake is None:
            raise
    if mistake is not None:
        raise mistake
    assert checker is not None
    return checker, module, None


def _untyped_function_error(definition: Definition, mistake: RelayError) -> RelayError:
    """The error for functions that are returned and selected at run time, whose types nothing tells."""
    return TypeCheckError(
        f"the function that {definition.function.name} returns is selected at run time, so its type cannot be inferred",
        definition.function.span,
        help="annotate what it returns: `-> Fn[[A, B], C]`",
        notes=(f"without an annotation: {mistake.message}",),
    )


def _names(result: Type) -> ResultNames:
    match result:
        case TensorType():
            return names_of_axes(result)
        case TupleType(items):
            return [_names(item) for item in items]
        case _:
            return None
