"""Data-dependent sizes: their introduction, their scope, and values that leave it.

A run-time number becomes a dim by `BindDim`, in the rest of the block at hand; everything that knows symbolic dims
works with it there. A tensor that leaves the block has `Any` in its type for such dims, and whoever gets it (a call's
result, a loop's parameter, what a reference, list or field holds) makes dims of what it finds: so two tensors of the
type `Tensor[float32, (Any,)]` never count as equally long without a check.

What an operator must know of such sizes is checked when the program runs: two that have to be equal are compared, and
from there on the operator sees one for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence

import attrs
import numpy as np

from relay.errors import Span, TypeCheckError
from relay.ir.dims import DataDependentDim, Dim, made_dim, resolve_dim, substitute, subtract, variables
from relay.ir.expr import Ascribe, Assert, AxisSize, BindDim, Binding, Constant, Function, OpCall
from relay.ir.sizes.facts import AT_LEAST, EQUAL, DimConstraint, mentions_made, solve
from relay.ir.types import (
    ANY,
    BOOL,
    INT32,
    INT64,
    BaseClass,
    BaseType,
    Form,
    FunctionType,
    Kind,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_dims,
    prune,
    scalar,
    show,
)
from relay.operator import lookup
from relay.typecheck.dims import follows_equal, is_dim
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    LocalFunction,
    Number,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    dim_of,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.restarts import CalledAtSizes, Place, SizeVaries
from relay.typecheck.elaboration.values import range_numbers, sizes
from relay.typecheck.guards import DataDependentGuard
from relay.typecheck.unification import flat_shape, is_known, resolve, shape_variable


def make(
    checker: Checker, out: TypedBlockBuilder, count: DynamicValue, name: str, span: Span | None, is_wide: bool = False
) -> DataDependentDim:
    """A dim that is this number (int32 or int64) in the rest of the block. `is_wide`: an int32 may not hold it."""
    of_range = count.of_range
    if resolve(count.type) != scalar(INT64):
        call = OpCall("cast", (count.atom,), {"dtype": INT64}, span)
        count = checker.bind(out, call, scalar(INT64), "size", span)
    number = checker.sizes.made[name] = checker.sizes.made.get(name, 0) + 1
    dim = made_dim(name if number == 1 else f"{name}_{number}", is_wide)
    checker.sources.pass_on(dim, count.atom)
    out.items.append(Binding((), BindDim(dim, count.atom, span)))
    checker.frame.scopes[-1][1].append(dim)
    checker.sizes.places[dim] = out.slot()
    if of_range:
        checker.sizes.of_rounds.add(dim)
    return dim


def as_sizes(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """Run-time integers as sizes, also in a tuple: `zeros((n, 4))`."""
    match entity:
        case Tuple(items, form):
            return Tuple(tuple(as_sizes(checker, out, i, span) for i in items), form)
        case DynamicValue(atom) if not isinstance(atom, Constant) and resolve(entity.type) in (
            scalar(INT32),
            scalar(INT64),
        ):
            is_wide = resolve(entity.type) == scalar(INT64) and not entity.of_range
            return Size(make(checker, out, entity, getattr(atom, "name", "size"), span, is_wide), span)
        case DynamicValue(atom) if not isinstance(atom, Constant) and _is_python_integer(entity):
            checker.specialize_to_numbers()
            entity = weak_types.counting_integer(checker, out, entity)
            checker.solver.unify(entity.type, scalar(INT32))
            return Size(make(checker, out, entity, getattr(atom, "name", "size"), span), span)
        case DynamicValue(atom) if atom in checker.places_of_numbers and _is_float(entity):
            range_numbers.must_count(checker, entity)
            return entity
        case _:
            return entity


def _is_float(entity: DynamicValue) -> bool:
    type_ = prune(entity.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType):
        return base.is_float
    return isinstance(base, Unknown) and base.classes == range_numbers.FLOATS


def _is_python_integer(entity: DynamicValue) -> bool:
    """True if a value is made of integers that Python gave, whose dtype is open."""
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType) or flat_shape(type_.shape):
        return False
    base = prune(type_.base)
    return isinstance(base, Unknown) and bool(base.literals) and BaseClass.INTEGER in (base.classes or ())


def data_dependent_dims(type_: Type) -> set[DataDependentDim]:
    """The data-dependent sizes in a type."""
    found: set[DataDependentDim] = set()

    def look(dim: Dim) -> Dim:
        found.update(v for v in variables(resolve_dim(dim)) if isinstance(v, DataDependentDim))
        return dim

    map_dims(resolve(type_), look)
    return found


def open_sizes(checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, span: Span | None) -> DynamicValue:
    """A tensor with a dim for each `Any` in its type."""
    type_ = prune(typed.type)
    if not isinstance(type_, TensorType) or ANY not in (shape := flat_shape(type_.shape)):
        return typed
    found: list[Dim] = []
    for axis, dim in enumerate(shape):
        if dim is ANY:
            size = checker.bind(out, AxisSize(typed.atom, axis, span), scalar(INT64), "size", span)
            dim = make(checker, out, size, f"{getattr(typed.atom, 'name', 'axis')}_{axis}", span)
        found.append(dim)
    return ascribe_type(checker, out, typed, attrs.evolve(type_, shape=tuple(found)), span)


def all_opened(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """A value with a dim for each `Any` in the types of its tensors."""
    match entity:
        case Tuple(items, form):
            return _same_or(entity, tuple(all_opened(checker, out, i, span) for i in items), form)
        case DynamicValue():
            return open_sizes(checker, out, entity, span)
        case _:
            return entity


def _same_or(entity: Tuple, items: tuple[AbstractValue, ...], form: Form | None) -> Tuple:
    """A tuple with other items; itself if they are its own, since it is known by its identity."""
    return entity if all(a is b for a, b in zip(items, entity.items, strict=True)) else Tuple(items, form)


def ascribe_type(
    checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, type_: Type, span: Span | None
) -> DynamicValue:
    """A tensor at another type with the same extents."""
    name = getattr(typed.atom, "name", "value")
    return checker.bind(out, Ascribe(typed.atom, span), type_, name, span)


def pack_sizes(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    escaping: Container[DataDependentDim] | None,
    expected: Type | None,
    span: Span | None,
) -> AbstractValue:
    """A value that leaves the scope of sizes (None: of all), or goes where `expected` has `Any`.

    Raises TypeCheckError for a value that contains such tensors and cannot be changed.
    """
    expected = None if expected is None else prune(expected)  # type: ignore[assignment]
    match entity:
        case Tuple(items, form):
            same = isinstance(expected, TupleType) and len(expected.items) == len(items)
            types: Sequence[Type | None] = expected.items if same else [None] * len(items)  # type: ignore[union-attr]
            parts = zip(items, types, strict=True)
            return _same_or(entity, tuple(pack_sizes(checker, out, i, escaping, t, span) for i, t in parts), form)
        case Size() | SizeExpression() if _escapes(mentioned_in_number(entity), escaping):
            return checker.materialize(out, entity, span)
        case DynamicValue():
            return packed_value(checker, out, entity, escaping, expected, span)
        case LocalFunction(environment=captured) if escaping:
            for variable, inside in captured.items():
                if isinstance(inside, DynamicValue) and _escapes(data_dependent_dims(inside.type), escaping):
                    raise TypeCheckError(
                        f"a function that uses {variable.name}, whose size is computed in this block, cannot leave it",
                        span,
                        help="return what it computes, or give it the tensor as an argument",
                    )
            return entity
        case _:
            return entity


def packed_value(
    checker: Checker,
    out: TypedBlockBuilder,
    typed: DynamicValue,
    escaping: Container[DataDependentDim] | None,
    expected: Type | None,
    span: Span | None,
) -> DynamicValue:
    """As `packed`, of one value."""
    type_ = prune(typed.type)
    if isinstance(type_, TensorType):
        wanted = prune(expected) if expected is not None else None
        shape = flat_shape(type_.shape)
        others = flat_shape(wanted.shape) if isinstance(wanted, TensorType) else ()
        if len(others) != len(shape):
            others = shape
        found = tuple(
            ANY if other is ANY or _escapes(dims_in_expression(dim), escaping) else dim
            for dim, other in zip(shape, others, strict=True)
        )
        if found == shape:
            return typed
        return ascribe_type(checker, out, typed, attrs.evolve(type_, shape=found), span)
    if (
        escaping is not None
        and not isinstance(type_, TupleType)
        and _escapes(data_dependent_dims(typed.type), escaping)
    ):
        raise TypeCheckError(
            f"a {show(resolve(typed.type))} cannot leave the block that computes its sizes",
            span,
            help="give the tensors a size that is known outside the block, or create the value there",
        )
    return typed


def dims_in_expression(dim: Dim) -> set[DataDependentDim]:
    """The data-dependent sizes in a dim."""
    return {v for v in variables(resolve_dim(dim)) if isinstance(v, DataDependentDim)}


def mentioned_in_number(number: Number) -> set[DataDependentDim]:
    """The data-dependent sizes which a number is computed from."""
    if isinstance(number, SizeExpression):
        return {dim for operand in number.operands for dim in mentioned_in_number(operand)}
    found = dim_of(number)
    return set() if found is None else dims_in_expression(found)


def number_at_run_time(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> AbstractValue:
    """A number that data-dependent sizes decide as a tensor of rank 0; anything else as it is. For what needs the
    number itself."""
    if isinstance(entity, Size | SizeExpression) and mentioned_in_number(entity):
        return checker.materialize(out, entity, span)
    return entity


def _escapes(found: Collection[DataDependentDim], escaping: Container[DataDependentDim] | None) -> bool:
    return bool(found) if escaping is None else any(dim in escaping for dim in found)


def place_of(checker: Checker, function: LocalFunction, parameters: Sequence[Type]) -> TypedBlockBuilder:
    """The builder in which an instance of a function is bound: where the function is defined, or, if its parameters
    have sizes that are bound later, after the last of these."""
    later = {dim for p in parameters for dim in data_dependent_dims(p)}
    later = {dim for dim in later if dim not in function.sizes}
    if not later:
        return function.slot
    return checker.sizes.places[max(later, key=list(checker.sizes.places).index)]


def pack_argument(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, parameter: Type, span: Span | None
) -> AbstractValue:
    """The argument for a parameter of a function value whose sizes are not known yet: with `Any` for sizes that are
    bound after the function, which it cannot know."""
    known = prune(parameter)
    if isinstance(value, Tuple):
        same = isinstance(known, TupleType) and len(known.items) == len(value.items)
        wanted = known.items if same and isinstance(known, TupleType) else [parameter] * len(value.items)
        parts = zip(value.items, wanted, strict=True)
        return _same_or(value, tuple(pack_argument(checker, out, v, p, span) for v, p in parts), value.form)
    if isinstance(value, DynamicValue) and not isinstance(prune(value.type), TensorType):
        return value
    if not isinstance(value, DynamicValue | Size | SizeExpression):
        return value
    if isinstance(known, Unknown) and known in checker.sizes.of_parameters:
        return pack_sizes(checker, out, value, checker.sizes.of_parameters[known].complement(), None, span)
    is_open = isinstance(known, Unknown)
    if isinstance(known, TensorType):
        is_open = any(isinstance(prune(d), Unknown) for d in flat_shape(known.shape))
    return pack_sizes(checker, out, value, None if is_open else (), known, span)  # type: ignore[arg-type]


def common_type(left: Type, right: Type, of_all_sizes: bool = False) -> Type | None:
    """The type that a value has which is of one type on one path and of another on another, if they differ in
    data-dependent sizes, or in any (`of_all_sizes`); None if they do not, or differ in more."""
    a, b = prune(left), prune(right)
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return None
    first, second = flat_shape(a.shape), flat_shape(b.shape)
    if len(first) != len(second) or first == second:
        return None
    found = []
    for x, y in zip(first, second, strict=True):
        x, y = resolve_dim(x), resolve_dim(y)
        of_the_run = of_all_sizes or mentions_made(x) or mentions_made(y)
        if x is ANY or y is ANY or (of_the_run and follows_equal(x, y) is not True):
            found.append(ANY)
        else:
            found.append(x)  # type: ignore[arg-type]
    return attrs.evolve(a, shape=tuple(found)) if ANY in found else None


def any_axes(annotation: Type | None) -> list[int]:
    """The axes that an annotation leaves open."""
    if not isinstance(annotation, TensorType) or shape_variable(annotation.shape) is not None:
        return []
    return [axis for axis, dim in enumerate(annotation.shape) if dim is ANY]


def varying_axes(found: Type, expected: Type, may: Collection[int] | None = ()) -> set[int]:
    """The axes at which a value does not have the size that a place has, since one of them is data-dependent, or
    they may vary in any case (None: all)."""
    met = common_type(found, expected, of_all_sizes=may is None or bool(may))
    own = common_type(found, expected)
    at = prune(expected)
    if met is None or not isinstance(met, TensorType) or not isinstance(at, TensorType):
        return set()
    axes = {axis for axis, (m, e) in enumerate(zip(met.shape, flat_shape(at.shape), strict=True)) if m is ANY is not e}
    always = own.shape if isinstance(own, TensorType) else ()
    return {a for a in axes if may is None or a in may or (always and always[a] is ANY)}


def is_function_of_any(annotation: Type | None) -> bool:
    """True if a function is declared to take tensors with `Any`."""
    return isinstance(annotation, FunctionType) and any(any_axes(p) for p in annotation.parameters)


def refuse_one_size(checker: Checker, callee: DynamicValue, arguments: Sequence[DynamicValue]) -> None:
    """Start again where a function of tensors with `Any` is called at other sizes than before."""
    type_ = prune(callee.type)
    place = checker.sizes.functions_of_any.get(callee.atom)
    if place is None or not isinstance(type_, FunctionType):
        return
    for argument, wanted in zip(arguments, type_.parameters, strict=False):
        if is_known(wanted) and varying_axes(argument.type, wanted, None):
            raise CalledAtSizes(place)


def of_any_size(
    checker: Checker, out: TypedBlockBuilder, argument: DynamicValue, wanted: Type, span: Span | None
) -> DynamicValue:
    """An argument of a function value, with `Any` where its parameter has that."""
    known = prune(wanted)
    return widen_axes(checker, out, argument, any_axes(known) if isinstance(known, TensorType) else (), span)


def note_any(checker: Checker, entity: AbstractValue, written: Type | None) -> None:
    """Note which axes of a parameter, or of the tensors in it, its annotation leaves open."""
    match entity, written:
        case DynamicValue(atom), TensorType() if axes := any_axes(written):
            checker.sizes.axes_of_any[atom] = axes
        case Tuple(items), TupleType(parts) if len(items) == len(parts):
            for item, part in zip(items, parts, strict=True):
                note_any(checker, item, part)
        case _:
            pass


def widen_axes(
    checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, axes: Collection[int], span: Span | None
) -> DynamicValue:
    """A tensor with `Any` at axes."""
    type_ = prune(typed.type)
    if not isinstance(type_, TensorType):
        return typed
    shape = tuple(ANY if axis in axes else dim for axis, dim in enumerate(flat_shape(type_.shape)))
    return typed if shape == type_.shape else ascribe_type(checker, out, typed, attrs.evolve(type_, shape=shape), span)


def refuse_sizes(checker: Checker, found: Type, expected: Type, place: Place, may: Collection[int] | None = ()) -> None:
    """Start again with `Any` at axes of a place whose size changes, unless that has been tried. `may`: axes that may
    have sizes that are known and differ (None: all)."""
    axes = varying_axes(found, expected, may) - checker.decisions.varying.get(place, set())
    if axes:
        raise SizeVaries(place, axes)


# ---- checks


def fit_arguments(
    checker: Checker,
    out: TypedBlockBuilder,
    function: Function,
    values: Sequence[DynamicValue | None],
    span: Span | None,
) -> list[DynamicValue | None]:
    """The arguments of a function whose annotations give sizes to data-dependent axes: it checks them."""
    found = list(values)
    types = [None if v is None else prune(v.type) for v in values]
    meaning: dict[TypeId, Dim] = {}
    for parameter, type_ in zip(function.parameters, types, strict=True):
        for _, wanted, dim in _sizes_wanted(parameter.type, type_):
            if isinstance(wanted, TypeId) and not mentions_made(dim):
                meaning.setdefault(wanted, dim)
    for position, parameter in enumerate(function.parameters):
        for axis, wanted, dim in _sizes_wanted(parameter.type, types[position]):
            size = meaning.setdefault(wanted, dim) if isinstance(wanted, TypeId) else wanted
            value = found[position]
            if value is None or not mentions_made(dim) or follows_equal(dim, size) is True:
                continue
            solved = solve(subtract(dim, size), lambda v: isinstance(v, DataDependentDim))
            if solved is None:
                continue
            number = f"{size} elements" if isinstance(size, int) else f"{wanted} elements, as in the other arguments"
            text = f"axis {axis} of argument {parameter.name} of {function.name} must have {number}"
            require(checker, out, DimConstraint(dim, EQUAL, size), span, f"{text}, but has a different number")
            type_ = map_dims(resolve(value.type), dim_replacement(*solved))
            found[position] = ascribe_type(checker, out, value, type_, span)
    return found


def narrow_to_annotation(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, wanted: Type, what: str, span: Span | None
) -> AbstractValue:
    """A value for an annotation that says more of its sizes than is static: they are checked at run time."""
    known = prune(wanted)
    if isinstance(entity, Tuple) and isinstance(known, TupleType) and len(entity.items) == len(known.items):
        pairs = enumerate(zip(entity.items, known.items, strict=True))
        parts = tuple(narrow_to_annotation(checker, out, e, w, f"item {i} of {what}", span) for i, (e, w) in pairs)
        return _same_or(entity, parts, entity.form)
    if not isinstance(entity, DynamicValue) or not isinstance(known, TensorType):
        return entity
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType) or len(flat_shape(type_.shape)) != len(flat_shape(known.shape)):
        return entity
    for axis, size in enumerate(map(resolve_dim, flat_shape(known.shape))):
        dim = resolve_dim(flat_shape(resolve(entity.type).shape)[axis])  # type: ignore[union-attr]
        is_open = size is ANY or isinstance(size, Unknown) or mentions_made(size)
        if is_open or not mentions_made(dim) or follows_equal(dim, size) is True:
            continue
        solved = solve(subtract(dim, size), lambda v: isinstance(v, DataDependentDim))
        if solved is not None:
            text = f"axis {axis} of {what} must have {size} elements, but has a different number"
            require(checker, out, DimConstraint(dim, EQUAL, size), span, text)
            entity = ascribe_type(checker, out, entity, map_dims(resolve(entity.type), dim_replacement(*solved)), span)
    return entity


def _sizes_wanted(annotation: Type | None, type_: object) -> list[tuple[int, TypeId | int, Dim]]:
    """The axes of a tensor with the annotation of their sizes, where that is a number or a variable."""
    if not isinstance(annotation, TensorType) or not isinstance(type_, TensorType):
        return []
    shape = flat_shape(type_.shape)
    if len(shape) != len(annotation.shape) or shape_variable(shape) is not None:
        return []
    pairs = enumerate(zip(annotation.shape, shape, strict=True))
    return [(axis, a, d) for axis, (a, d) in pairs if isinstance(a, int) or _is_size(a)]  # type: ignore[misc]


def _is_size(dim: object) -> bool:
    return isinstance(dim, TypeId) and dim.kind is Kind.Dim


def require(
    checker: Checker, out: TypedBlockBuilder, constraint: DimConstraint, span: Span | None, text: str | None = None
) -> None:
    """Check at run time what is needed of sizes. `text`: what is wrong where it does not hold."""
    left, right = (number(checker, out, dim, span) for dim in (constraint.left, constraint.right))
    operator = {EQUAL: "equal", AT_LEAST: "greater_equal"}[constraint.relation]
    call = OpCall(lookup(operator).name, (left.atom, right.atom), {}, span)
    holds = checker.bind(out, call, scalar(BOOL), "holds", span)
    out.items.append(Binding((), Assert(holds.atom, text or _assertion_text(constraint), span)))


def _assertion_text(constraint: DimConstraint) -> str:
    if constraint.relation == AT_LEAST and constraint.right == 1:
        return "an axis is empty, but must have at least one element"
    if constraint.relation == AT_LEAST and isinstance(constraint.left, int):
        return f"an axis has more than {constraint.left} elements"
    if constraint.relation == AT_LEAST:
        return "index out of range: an axis has too few elements"
    if isinstance(constraint.right, int):
        return f"an axis must have {constraint.right} elements here, but has a different number"
    return "two axes must have the same number of elements here, but they differ"


def number(checker: Checker, out: TypedBlockBuilder, dim: Dim, span: Span | None) -> DynamicValue:
    """A dim as an int64."""
    dim = resolve_dim(dim)
    if isinstance(dim, int):
        constant = Constant(np.asarray(dim, np.int64), span)
        return DynamicValue(constant, constant.type)
    return sizes.extent(checker, out, dim, INT64, span)


def agree(
    checker: Checker,
    out: TypedBlockBuilder,
    question: DataDependentGuard,
    operands: Sequence[AbstractValue],
    attributes: dict[str, object],
    span: Span | None,
    described: Sequence[str],
) -> tuple[list[AbstractValue], dict[str, object]]:
    """Check that two sizes are equal, and put one for the other in what an operator gets. Raises the question if that
    is not an answer to it. `described`: the operands as they are written."""
    solved = None
    if question.relation == EQUAL:
        solved = solve(subtract(question.left, question.right), lambda v: isinstance(v, DataDependentDim))
    if solved is None:
        raise question
    variable, value = solved
    text = _unequal_sizes(question, operands, described) if len(described) == len(operands) else None
    require(checker, out, DimConstraint(variable, EQUAL, value), span, text)

    replaced = dim_replacement(variable, value)
    changed: list[AbstractValue] = []
    for operand in operands:
        if isinstance(operand, DynamicValue) and variable in data_dependent_dims(operand.type):
            operand = ascribe_type(checker, out, operand, map_dims(resolve(operand.type), replaced), span)
        elif isinstance(operand, Size) and variable in dims_in_expression(operand.dim):
            operand = Size(replaced(operand.dim), operand.span)
        changed.append(operand)
    return changed, {name: _replace_dims(value, replaced) for name, value in attributes.items()}


def _unequal_sizes(
    question: DataDependentGuard, operands: Sequence[AbstractValue], described: Sequence[str]
) -> str | None:
    """The error of two sizes that have to be equal: which axes of which operands they are of, if that is known."""
    places = [
        (resolve_dim(dim), f"axis {axis} of {text}")
        for operand, text in zip(operands, described, strict=True)
        if isinstance(operand, DynamicValue) and isinstance(type_ := resolve(operand.type), TensorType)
        for axis, dim in enumerate(type_.shape)
    ]
    left, right = (
        next((t for d, t in places if d == resolve_dim(side)), None) for side in (question.left, question.right)
    )
    number = next((side for side in (question.left, question.right) if isinstance(side, int)), None)
    if number is not None:
        place = left if isinstance(question.right, int) else right
        return None if place is None else f"{place} must have {number} elements here, but has a different number"
    if left is None or right is None:
        return None
    return f"{left} and {right} must have the same number of elements here, but they differ"


def dim_replacement(variable: object, value: Dim) -> Callable[[Dim], Dim]:
    """A function that replaces a variable with a dim."""
    return lambda dim: substitute(resolve_dim(dim), lambda v: value if v is variable else v)


def _replace_dims(value: object, replaced: Callable[[Dim], Dim]) -> object:
    if isinstance(value, tuple):
        return tuple(_replace_dims(v, replaced) for v in value)
    return replaced(value) if is_dim(value) and not isinstance(value, int) else value  # type: ignore[arg-type]
