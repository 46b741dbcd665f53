"""Stuck terms: applications in a scheme, as `x[0]` of an unknown type, that a call's types reduce.

Each is an application of a type-level function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from relay.errors import RelayError, Span
from relay.ir.dims import DimExpr
from relay.ir.expr import (
    Atom,
    Binding,
    Call,
    Constant,
    Exit,
    Expr,
    Global,
    Loop,
    OpCall,
    Static,
    Var,
)
from relay.ir.surface import Apply, Attribute, ForEach, Index, IndexUpdate, PatternMatch, Slice, Unpack
from relay.ir.traverse import blocks, bound_variables, free_variables, operands
from relay.ir.types import (
    Application,
    AttributeValue,
    Kind,
    Shape,
    TupleType,
    Type,
    Unknown,
    prune,
)
from relay.operator import Operator
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    PythonNumber,
    PythonObject,
    Size,
    Tuple,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.schemes import effect_inference
from relay.typecheck.unification import flat_shape, unknowns

_NAMES = {"max": "largest", "min": "smallest"}  # which are functions of dims in a type


@attrs.frozen
class StuckTerm:
    """An application and the value that it has: a type, or a shape. `span` is where it arose. It is decided once the
    types in `awaited` are known, or one of them (`any_`), and then may decide those in `mentioned`."""

    application: Application
    value: Type | Shape
    span: Span | None = None
    awaited: tuple[object, ...] = ()
    any_: bool = False
    mentioned: tuple[object, ...] = ()


def application_of(
    operator: Operator, rule: Callable[..., object], shapes: Sequence[Shape], attributes: Mapping[str, object]
) -> Application:
    """A shape rule of an operator at shapes: by the rule's name if it has one for users, with the attributes that it
    looks at where they are not its defaults."""
    name = getattr(rule, "__name__", "_")
    parameters = _parameters(rule)
    is_shared = getattr(rule, "__module__", "").startswith("relay.typecheck.") and not name.startswith("_")
    shown = name.removesuffix("_shape") if is_shared else operator.name
    given = {}
    for key, value in attributes.items():
        default = parameters[key].default if key in parameters else value
        if default is inspect.Parameter.empty and shown == operator.name:
            default = operator.attributes[key]
        if type(value) is not type(default) or value != default:
            given[key] = value
    return Application(shown, tuple(flat_shape(s) for s in shapes), attribute_items(given))


@functools.lru_cache(maxsize=256)
def _parameters(rule: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(rule).parameters
    except ValueError:
        return {}


def attribute_items(attributes: Mapping[str, object]) -> tuple[tuple[str, AttributeValue], ...]:
    return tuple((name, _attribute(value)) for name, value in attributes.items())


def _attribute(value: object) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(map(_attribute, value))
    return prune(value) if isinstance(value, Unknown | DimExpr) else value  # type: ignore[return-value]


def is_open(checker: Checker, context: Context, binding: Binding, error: RelayError | DependsOnPoison) -> bool:
    """True if a call's types decide the meaning of a binding: it needs them, or its mistake may be only that the
    type of an operand is open."""
    if isinstance(error, SchemeOnly):
        return True
    if not checker.is_partial or isinstance(error, DependsOnPoison):
        return False
    used = [atom for atom in _used_atoms(binding.value) if isinstance(atom, Var)]
    return any(v in checker.scheme.doubtful for v in used) or any(_has_open_type(context.lookup(v)) for v in used)


def _has_open_type(entity: AbstractValue) -> bool:
    """True if the type or rank of a value is not known."""
    match entity:
        case DynamicValue(_, type_):
            return any(u.kind in (Kind.Type, Kind.Shape) for u in unknowns(type_))
        case Tuple(items):
            return any(map(_has_open_type, items))
        case Method(value):
            return _has_open_type(value)
        case _:
            return False


def note_doubt(checker: Checker, binding: Binding) -> None:
    """Note that what a binding makes comes from what is open, if an operand does."""
    if not checker.scheme.doubtful.isdisjoint(_used_atoms(binding.value)):
        checker.scheme.doubtful.update(binding.targets, bound_variables(binding.value))


def open_binding(checker: Checker, context: Context, binding: Binding) -> None:
    """A binding whose meaning a call decides: its targets get variables as types."""
    effect_inference.note(checker, context, binding)
    arguments = tuple(t for atom in _used_atoms(binding.value) if (t := _argument(context, atom)) is not None)
    name = _callee_name(context, binding.value) or _name(binding.value)
    span, subject = binding.value.span, _subject(context, binding.value)
    mentioned = _mentioned_types(checker, context, binding.value)
    for position, target in enumerate(binding.targets):
        unknown = checker.solver.fresh_variable(Kind.Type)
        item: tuple[tuple[str, AttributeValue], ...] = (("item", position),) if len(binding.targets) > 1 else ()
        if subscript := _subscript(context, binding.value):
            arguments = tuple(a for a in arguments if not isinstance(a, int))
            item += subscript
        application = Application(name, arguments, item)
        awaited = subject if subject is not None else arguments
        checker.scheme.opened.append(StuckTerm(application, unknown, span, awaited, subject is None, mentioned))
        context.environment[target] = DynamicValue(checker.variable(target.name, unknown, target.span), unknown)
    _note_exits(checker, context, binding, StuckTerm(Application(name, arguments), (), span, subject or arguments))
    if not binding.targets:
        awaited = subject if subject is not None else arguments
        checker.scheme.unseen.append(
            StuckTerm(Application(name, arguments), (), span, awaited, subject is None, mentioned)
        )
    checker.scheme.doubtful.update(binding.targets)
    checker.is_partial = True


def _note_exits(checker: Checker, context: Context, binding: Binding, opened: StuckTerm) -> None:
    """Note that the functions around a binding may return there."""
    if not checker.generic:
        return
    labels = dict.fromkeys(end.label for end in exits(binding.value) if end.label in context.handlers)
    for handler in (context.handlers[label] for label in labels):
        if handler.on_open_exit is not None:
            result = checker.solver.fresh_variable(Kind.Type)
            checker.scheme.opened.append(attrs.evolve(opened, value=result))
            handler.on_open_exit(binding.value, result)


def _subject(context: Context, expression: Expr) -> tuple[Type, ...] | None:
    """The types of what has to be known for an expression to have a meaning; None if any of its operands may do."""
    match expression:
        case Attribute() | Index() | IndexUpdate() | Unpack() | PatternMatch():
            atom = expression.value
        case ForEach():
            atom = expression.iterable
        case _:
            return None
    return tuple(_types(context.lookup(atom))) if isinstance(atom, Var) else ()


def _mentioned_types(checker: Checker, context: Context, expression: Expr) -> tuple[Type, ...]:
    """The types of which an expression may tell more once it has a meaning."""
    found = [t for atom in _used_atoms(expression) if isinstance(atom, Var) for t in _types(context.lookup(atom))]
    if next(iter(blocks(expression)), None) is not None:  # it may return
        found += [instance.result for instance in checker.frame.active]
    return tuple(found)


def _types(entity: AbstractValue) -> Iterator[Type]:
    """The types of the values in something, also of those that functions capture."""
    match entity:
        case DynamicValue(_, type_):
            yield type_
        case Tuple(items) | Zip(items):
            for item in items:
                yield from _types(item)
        case Method(value) | DerivativeFunction(value):
            yield from _types(value)
        case LocalFunction(environment=captured):
            for item in captured.values():
                yield from _types(item)
        case _:
            pass


def _subscript(context: Context, expression: Expr) -> tuple[tuple[str, AttributeValue], ...]:
    """The attributes that describe a subscript with slices: `at="1:, 0"`; run-time values are `?`, and come before."""
    if not isinstance(expression, Index) or not any(isinstance(i, Slice) for i in expression.items):
        return ()

    def text(atom: Atom | None) -> str:
        if atom is None or isinstance(atom, Static):
            written = "" if atom is None else atom.value
            return "..." if written is Ellipsis else str(written)
        found = _argument(context, atom)
        return str(found) if isinstance(found, int) else "?"

    def item_text(item: Atom | Slice) -> str:
        if not isinstance(item, Slice):
            return text(item)
        step = f":{text(item.step)}" if item.step is not None else ""
        return f"{text(item.start)}:{text(item.stop)}{step}"

    return (("at", ", ".join(map(item_text, expression.items))),)


def _callee_name(context: Context, expression: Expr) -> str | None:
    """The name of the callee of a call, if it is a variable."""
    entity = (
        context.lookup(expression.function)
        if isinstance(expression, Apply) and isinstance(expression.function, Var)
        else None
    )
    match entity:
        case PythonObject(value):
            name = getattr(value, "name", None) or getattr(value, "__name__", None)
        case GlobalFunction(definition):
            name = definition.function.name
        case Method(_, name) | LocalFunction(name=name):
            pass
        case _:
            name = None
    return name if isinstance(name, str) and name.isidentifier() else None


def _used_atoms(expression: Expr) -> list[Atom]:
    """The operands of an expression, also of those inside of it."""
    found: dict[Atom, None] = dict.fromkeys(operands(expression))
    own = set(bound_variables(expression))
    for block in blocks(expression):
        found.update((v, None) for v in free_variables(block) if v not in own)
    return list(found)


def _argument(context: Context, atom: Atom) -> Type | int | None:
    match atom:
        case Var():
            return _entity_argument(context.lookup(atom))
        case Constant():
            return atom.type if atom.value.ndim or atom.value.dtype.kind != "i" else int(atom.value)
        case Static(int() as value) if not isinstance(value, bool):
            return value
        case _:
            return None


def _entity_argument(entity: AbstractValue) -> Type | int | None:
    match entity:
        case DynamicValue(_, type_):
            return type_
        case Tuple(items):
            parts = [_entity_argument(i) for i in items]
            types = [p for p in parts if p is not None and not isinstance(p, int)]
            return TupleType(tuple(types)) if len(types) == len(parts) else None
        case Size(dim):
            return dim  # type: ignore[return-value]
        case PythonNumber(int() as value):
            return value
        case _:
            return None


def _name(expression: Expr) -> str:
    match expression:
        case Index():
            return "index"
        case IndexUpdate():
            return "updated"
        case Attribute(_, name):
            return name
        case ForEach() | Loop():
            return "loop"
        case PatternMatch():
            return "match"
        case OpCall(name):
            return name
        case Apply(Global(name)) | Call(Global(name)):
            return _NAMES.get(last := name.rpartition(".")[2], last)
        case Unpack():
            return "unpack"
        case _:
            return "call"


def exits(value: Expr) -> Iterator[Exit]:
    """The exits by which the blocks of an expression leave the expression, or a part of it."""
    for block in blocks(value):
        if isinstance(block.terminator, Exit):
            yield block.terminator
        for binding in block.bindings:
            yield from exits(binding.value)
