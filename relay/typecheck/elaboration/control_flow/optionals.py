"""Optional values: what is None on one path and something else on another (`relay/ir/definition.py`).

    best = None
    while ..:
        if best is None or v > best:    # a test at run time; to use the value asserts that there is one
            best = v

They are passed on as they are, by assignments, loops, branches, calls, structures and results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.definition import NOTHING, OPTIONAL, SOME, content_type, is_optional
from relay.ir.dims import ANY, Dim, resolve_dim, substitute
from relay.ir.expr import Assert, Atom, Binding, Block, Constant, Dead, Match, MatchArm, Var, Yield
from relay.ir.intrinsic import Intrinsic
from relay.ir.sizes.facts import mentions_made
from relay.ir.structure import is_record_class
from relay.ir.traverse import free_variables
from relay.ir.types import (
    BOOL,
    BaseClass,
    DataType,
    Kind,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_type_parts,
    prune,
    scalar,
)
from relay.ir.types import NONE as NO_VALUE
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    Method,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.restarts import CellReadEarly
from relay.typecheck.elaboration.values.data import data_type, fresh_type, is_data_class, is_text
from relay.typecheck.elaboration.values.data_construction import build
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import flat_shape, resolve

NONE = PythonObject(None)


def is_none(entity: AbstractValue) -> bool:
    """True if a value is known to be None."""
    return isinstance(entity, PythonObject) and entity.value is None


def may_be_none(entity: AbstractValue) -> bool:
    """True if a value may be None at run time."""
    return isinstance(entity, DynamicValue) and is_optional(entity.type)


def are_comparable(operands: Sequence[AbstractValue]) -> bool:
    """True if operands of which one may be None have one answer to `==`: none is an array where it is not None."""
    return all(_is_comparable(one, operands) for one in operands if may_be_none(one))


def _is_comparable(entity: AbstractValue, operands: Sequence[AbstractValue]) -> bool:
    assert isinstance(entity, DynamicValue)
    inside = prune(content_type(entity.type))
    if isinstance(inside, TensorType):
        return flat_shape(inside.shape) == ()
    if isinstance(inside, Unknown):  # which a later use decides
        return any(is_none(o) or is_text(o) or isinstance(o, Number) for o in operands)
    return isinstance(inside, DataType | TupleType)


def have_optional(entities: Sequence[AbstractValue]) -> bool:
    """True if values that meet are optional together: some are None, and the others are values at run time."""
    missing = [e for e in entities if is_none(e)]
    others = [e for e in entities if not is_none(e)]
    if not others or not all(isinstance(e, DynamicValue | Number | Tuple) or is_text(e) for e in others):
        return False
    return any(map(may_be_none, others)) or bool(missing)


def is_new_option(entity: AbstractValue, known: object) -> bool:
    """True if a value, or None, meets None, or a value, of a type that is known already."""
    if isinstance(known, Unknown) or (is_none(entity) and known == NO_VALUE):
        return False
    if is_none(entity):
        return isinstance(known, TensorType | TupleType | DataType | StackType) and not is_optional(known)
    return known == NO_VALUE and have_optional([NONE, entity])


def as_optional(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, type_: Type, span: Span | None
) -> DynamicValue:
    """A value, or None, as an optional value of this type."""
    if may_be_none(entity):
        assert isinstance(entity, DynamicValue)
        return entity
    known = prune(type_)
    assert isinstance(known, DataType)
    nothing, some = OPTIONAL.constructors
    if is_none(entity):
        return build(checker, out, known, nothing, (), span)
    return build(checker, out, known, some, (weak_types.free_count(checker, out, entity),), span)


def optional_type(checker: Checker, content: Type | None = None) -> DataType:
    """The type of optional values, of this type where they are not None."""
    return fresh_type(checker, OPTIONAL) if content is None else DataType(OPTIONAL, (content,))


def from_earlier_elaboration(checker: Checker, type_: Type, span: Span | None) -> Type:
    """A type that an earlier elaboration of the same program has found, with the variables of this one: symbolic dims
    by their names; what was open is open again, and what is made at run time may be of any size."""
    symbolic = {dim.name: dim for dim in checker.hints.dims}

    def variable(found: TypeId | Unknown) -> Dim:
        if isinstance(found, TypeId):
            return found
        return symbolic.get(found.name) or checker.solver.fresh_variable(found.kind)

    def part(inside: Type) -> Type:
        known = prune(inside)
        match known:
            case TensorType(base, shape):
                dims = [ANY if mentions_made(d) else substitute(d, variable) for d in map(resolve_dim, shape)]
                open_base = prune(base)
                if isinstance(open_base, Unknown):
                    whole = open_base.classes is not None and BaseClass.INTEGER in open_base.classes
                    return TensorType(checker.solver.literal_base(1 if whole else 0.0, span), tuple(dims))
                return TensorType(open_base, tuple(dims))  # type: ignore[arg-type]
            case Unknown():
                return checker.solver.fresh_variable(Kind.Type)
            case _:
                return map_type_parts(known, part)  # type: ignore[arg-type]

    return part(resolve(type_))


def is_nothing(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, span: Span | None) -> DynamicValue:
    """A bool, at run time: an optional value is None."""
    no = Constant(np.asarray(False), span)
    return on_content(checker, out, TypedBlockBuilder(), value, lambda _: no, span, of_none=True)


def on_content(
    checker: Checker,
    out: TypedBlockBuilder,
    place: TypedBlockBuilder,
    value: DynamicValue,
    answer: Callable[[DynamicValue], Atom],
    span: Span | None,
    of_none: bool = False,
) -> DynamicValue:
    """A bool, at run time: `of_none` where an optional value is None, and otherwise the answer for its content, which
    is computed at `place`."""
    content = checker.variable("value", content_type(value.type), span)
    place.terminator = Yield((answer(DynamicValue(content, content_type(value.type))),), span)

    def build() -> Match:
        nothing = Block((), Yield((Constant(np.asarray(of_none), span),), span))
        return Match(value.atom, (MatchArm(NOTHING, (), nothing), MatchArm(SOME, (content,), place.block())), span)

    found = checker.variable("condition", scalar(BOOL), span)
    out.items.append(DeferredBinding((found,), build))
    return DynamicValue(found, scalar(BOOL))


def note_truth(checker: Checker, condition: AbstractValue, variable: object, entity: AbstractValue) -> None:
    """Note that an optional variable is not None where a condition holds that is its truth."""
    if isinstance(variable, Var) and may_be_none(entity):
        checker.none_tests.note(condition, frozenset({variable}), frozenset())


def note_equal(
    checker: Checker, found: AbstractValue, name: str, atoms: Sequence[Atom], given: Sequence[AbstractValue]
) -> None:
    """Note of the answer of `==` or `!=` where an optional variable is not None: where it equals what is not None."""
    for atom, own, other in zip(atoms, given, reversed(given), strict=True):
        if not isinstance(atom, Var) or not may_be_none(own) or may_be_none(other):
            continue
        where, nowhere = frozenset({atom}), frozenset[Var]()
        equals_value = (name == "equal") is not is_none(other)
        checker.none_tests.note(found, *((where, nowhere) if equals_value else (nowhere, where)))


def content(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    described: str,
    span: Span | None,
    is_certain: bool = False,
) -> AbstractValue:
    """The value of what may be None; anything else is itself. The program stops where it is None, which does not happen
    where `is_certain` that it is not."""
    if not may_be_none(entity):
        return entity
    assert isinstance(entity, DynamicValue) and data_type(entity) is not None
    if not is_certain:
        checker.effect("assert", f"stops where {described} is None", span)
    type_ = content_type(entity.type)
    _note_early_use(checker, type_, described, span)
    name = getattr(entity.atom, "name", "value")
    inside, value = checker.variable(name, type_, span), checker.variable(name, type_, span)
    no = Constant(np.asarray(False), span)
    stop = Binding((), Assert(no, f"{described} is None here", span))
    arms = (
        MatchArm(NOTHING, (), Block((stop,), Dead())),
        MatchArm(SOME, (inside,), Block((), Yield((inside,), span))),
    )
    out.items.append(DeferredBinding((value,), lambda: Match(entity.atom, arms, span)))
    found = expand(checker, out, DynamicValue(value, type_), span)
    return data_dependent.all_opened(checker, out, found, span)


# ---- references that begin as None, as variables that functions capture are kept in


def new_cell(checker: Checker, out: TypedBlockBuilder, span: Span | None) -> DynamicValue:
    """None as the first content of a reference, to which something else may be written."""
    known = None if span is None else checker.decisions.cells.get(span)
    inside: Type = (
        checker.solver.fresh_variable(Kind.Type) if known is None else from_earlier_elaboration(checker, known, span)
    )
    if span is not None:
        checker.none_cells[span] = inside
    return as_optional(checker, out, NONE, optional_type(checker, inside), span)


def _note_early_use(checker: Checker, type_: Type, described: str, span: Span | None) -> None:
    """Note the use of a reference's content before anything is written to it. Raises DependsOnPoison."""
    if checker.generic or not isinstance(prune(type_), Unknown):
        return
    for place, inside in checker.none_cells.items():
        if prune(inside) is prune(type_):
            error = TypeCheckError(f"{described} is None: no value is assigned to it before", span)
            checker.used_cells.setdefault(place, error)
            raise DependsOnPoison


def settle_cells(checker: Checker) -> None:
    """Begin again where contents of references were used before their types were known; what is only ever None is None.

    Raises CellReadEarly, or reports the use of what is only ever None.
    """
    found = {p: checker.none_cells[p] for p in checker.used_cells}
    found = {p: t for p, t in found.items() if not isinstance(prune(t), Unknown)}
    if any(place not in checker.decisions.cells for place in found):
        raise CellReadEarly(found)
    for error in checker.used_cells.values():
        checker.report(error)
    checker.used_cells.clear()
    if not checker.generic:
        for inside in checker.none_cells.values():
            if isinstance(prune(inside), Unknown):
                checker.solver.unify(inside, NO_VALUE)


# ---- narrowing: after a test that a value is not None, it is its content


def narrow(checker: Checker, context: Context, out: TypedBlockBuilder, variables: Iterable[Var]) -> None:
    """Let variables that are not None here mean their contents, until the block at hand ends."""
    for variable in checker.none_tests.in_order(variables):
        entity = context.lookup(variable)
        if may_be_none(entity):
            found = content(checker, out, entity, variable.name, variable.span, is_certain=True)
            context.narrow(variable, found)


@contextlib.contextmanager
def narrowed_variables(
    checker: Checker, context: Context, out: TypedBlockBuilder, variables: Iterable[Var], blocks: Sequence[Block]
) -> Iterator[None]:
    """While blocks are elaborated in which variables are not None: those that they mention mean their contents."""
    mark = len(context.narrowed)
    wanted = list(variables)
    if wanted:
        mentioned = {v for block in blocks for v in free_variables(block)}
        narrow(checker, context, out, [v for v in wanted if v in mentioned])
    yield
    context.restore(mark)


def is_none_test(callee: AbstractValue) -> bool:
    """True if a call is `x is None`."""
    return isinstance(callee, PythonObject) and callee.value == Intrinsic("is_none")


def is_filter(callee: AbstractValue) -> bool:
    """True if a call takes the truth of its argument, the condition of a comprehension."""
    return isinstance(callee, PythonObject) and callee.value == Intrinsic("keep")


# ---- uses

_PASSING = ("append", "contains", "insert", "list", "extend", "update", "is_none", "growing", "keep")
"""The intrinsics that put their arguments into structures, or ask whether they are None, true, or in something."""


def passes(callee: AbstractValue) -> bool:
    """True if a call passes on a value that may be None, as functions of the program and constructors do, or takes its
    truth."""
    match callee:
        case PythonObject(Intrinsic(name)):
            return name in _PASSING
        case PythonObject(type() as cls):
            return cls in (dict, bool) or is_record_class(cls) or is_data_class(cls)
        case Method(value):
            return data_type(value) is not None
        case _:
            return isinstance(callee, (*FUNCTIONS, DynamicValue, Tuple))
