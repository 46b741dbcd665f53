"""Arguments drawn from types, by Hypothesis, and as text that makes them again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from relay.api import tree
from relay.api.function import RelayFunction
from relay.calling.array import Array
from relay.errors import TypeCheckError
from relay.ir.annotations.annotation import Ref, to_type
from relay.ir.dims import ANY, DimExpr, Kind, TypeId
from relay.ir.structure import build, field_names, is_record_class
from relay.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    BaseClass,
    BaseType,
    ClassConstraint,
    DataDefinition,
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    type_variables,
)
from relay.operator.relation import substitute
from relay.testing.agreement import parts_of

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_SIZES = (1, 2, 3, 4, 5, 0)
_LARGEST_RANK = 3
_MOST_ELEMENTS = 3
"""Of a list."""

_OPEN_BASES = (FLOAT64, FLOAT32, INT32, BOOL)
"""The element types that are tried for a variable."""

_HELP = "give a type or a strategy of Hypothesis for each argument: relay.testing.check(f, Tensor[Float64, (n, 3)])"

_TYPES = (TensorType, TupleType, FunctionType, QuantifiedType, RefType, StackType, DataType, DataDefinition)


Bases = dict[TypeId, Sequence[BaseType]]


def argument_sources(f: RelayFunction, given: Sequence[object]) -> tuple[list[object], Bases]:
    """The sources of arguments: the given types and strategies, where anything else is itself the argument; or the
    types of the required parameters, and the possible element types of their variables. Raises TypeCheckError for
    types that arguments cannot be drawn from."""
    sources: list[object] = [to_type(g) if _is_type(g) else g for g in given]
    allowed: Bases = {}
    if not given:
        sources, allowed = _parameter_types(f)
    names = [p.name for p in f._function.parameters]
    for position, source in enumerate(sources):
        if isinstance(source, (*_TYPES, TypeId)):
            name = names[position] if position < len(names) else f"argument {position}"
            _require_drawable(source, name)  # type: ignore[arg-type]
    return sources, allowed


def arguments_strategy(sources: Sequence[object], allowed: Bases) -> SearchStrategy[tuple[Any, ...]]:
    """Tuples of arguments that come from these."""
    from hypothesis import strategies

    def draw_all(draw: DrawFn) -> tuple[Any, ...]:
        bound = _draw_variables(draw, [s for s in sources if isinstance(s, _TYPES)], allowed)
        found = []
        for source in sources:
            if isinstance(source, strategies.SearchStrategy):
                found.append(draw(source))
            elif isinstance(source, _TYPES):
                found.append(_draw(draw, substitute(source, bound)))  # type: ignore[arg-type]
            else:
                found.append(source)
        return tuple(found)

    return strategies.composite(draw_all)()


def without_an_index(sources: Sequence[object], arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The arguments without one of the indices of all axes of the same size; sizes that the types fix stay. It is what
    Hypothesis does not try, which can leave out the last elements only."""
    types = [s for s in sources if isinstance(s, _TYPES)]
    if len(types) < len(sources):
        return
    shapes = [d for t in types for d in _dims(t)]
    if any(isinstance(d, DimExpr) for d in shapes):
        return
    arrays = [leaf for leaf in tree.leaves(arguments) if isinstance(leaf, np.ndarray)]
    for size in sorted(
        {s for array in arrays for s in array.shape if s > 1} - {d for d in shapes if isinstance(d, int)}
    ):
        for index in range(size):
            cut = tree.map(lambda leaf, size=size, index=index: _cut(leaf, size, index), arguments)
            yield tuple(cut)


def _dims(type_: object) -> Iterator[object]:
    match type_:
        case TensorType(_, shape):
            yield from shape
        case TupleType(items):
            for item in items:
                yield from _dims(item)
        case StackType(RefType(element)):
            yield from _dims(element)


def _cut(leaf: Any, size: int, index: int) -> Any:
    if isinstance(leaf, np.ndarray):
        for axis in [axis for axis, extent in enumerate(leaf.shape) if extent == size]:
            leaf = np.delete(leaf, index, axis)
    return leaf


def _is_type(item: object) -> bool:
    """True if this is meant as a type, rather than as an argument."""
    return (
        isinstance(item, (*_TYPES, BaseType, TypeId, type, GenericAlias))
        or getattr(item, "__relay_type__", None) is not None
    )


def _parameter_types(f: RelayFunction) -> tuple[list[object], Bases]:
    """The types of the parameters that a call has to give, and what variables for element types may be."""
    found = f.type
    body = found.body if isinstance(found, QuantifiedType) else found
    assert isinstance(body, FunctionType)
    types: list[object] = []
    for position, type_ in enumerate(body.parameters):
        described = f._function.signature[position] if position < len(f._function.signature) else None
        if described is not None and described.default is not None:
            continue
        if described is not None and (described.static or described.kind == "keyword_only"):
            name = f._function.parameters[position].name
            kind = "static" if described.static else "keyword-only"
            raise TypeCheckError(
                f"check draws no {kind} arguments, and {f.__name__} needs {name}",
                f._function.span,
                help="check a function that calls it with one",
            )
        types.append(type_)
    allowed: Bases = {}
    for constraint in body.where:
        if isinstance(constraint, ClassConstraint) and isinstance(constraint.base, TypeId):
            bases = [b for b in _OPEN_BASES if b.base_class in constraint.classes]
            allowed[constraint.base] = bases or [b for b in _OPEN_BASES if b.base_class is BaseClass.FLOAT]
    return types, allowed


def _require_drawable(type_: Type, name: str) -> None:
    """Raise TypeCheckError for a type that has parts of which nothing is drawn."""
    match type_:
        case TensorType():
            return
        case TupleType(items):
            for item in items:
                _require_drawable(item, name)
        case StackType(RefType(element)):
            _require_drawable(element, name)
        case TypeId():
            raise TypeCheckError(f"check cannot tell of which type {name} is", help=_HELP)
        case _:
            raise TypeCheckError(f"check draws arrays, numbers, tuples and lists of them; {name}: {type_}", help=_HELP)


# ---- values


def _draw_variables(draw: DrawFn, types: Sequence[object], allowed: Bases) -> dict[TypeId, object]:
    """The values of the variables in the types. Shapes are the last axes of one shape, so that they often fit."""
    from hypothesis import strategies

    sizes = strategies.sampled_from(_SIZES)
    common: tuple[int, ...] | None = None
    bound: dict[TypeId, object] = {}
    for variable in dict.fromkeys(v for t in types for v in type_variables(t)):
        if variable.kind is Kind.Dim:
            bound[variable] = draw(sizes)
        elif variable.kind is Kind.BaseType:
            bound[variable] = draw(strategies.sampled_from(allowed.get(variable, _OPEN_BASES)))
        elif variable.kind is Kind.Shape:
            if common is None:
                common = tuple(draw(strategies.lists(sizes, max_size=_LARGEST_RANK)))
            left_out = draw(strategies.integers(0, len(common)))
            bound[variable] = common[left_out:]
    return bound


def _draw(draw: DrawFn, type_: Type) -> Any:
    from hypothesis import assume, strategies

    match type_:
        case TensorType(BaseType() as base, shape):
            drawn = [draw(strategies.sampled_from(_SIZES)) if d is ANY else d for d in shape]
            sizes = [d for d in drawn if isinstance(d, int) and d >= 0]
            assume(len(sizes) == len(shape))  # n - 1 of a drawn n may be negative
            count = math.prod(sizes)
            elements = draw(strategies.lists(_elements(base), min_size=count, max_size=count))
            array = np.array(elements, base.dtype).reshape(sizes)
            return array if shape else array[()]
        case TupleType(items, form):
            return build(form, [_draw(draw, item) for item in items])
        case StackType(RefType(element)):
            return [_draw(draw, element) for _ in range(draw(strategies.integers(0, _MOST_ELEMENTS)))]
    raise AssertionError(type_)


def _elements(base: BaseType) -> SearchStrategy[Any]:
    """Small numbers that every float type has exactly: sums of them do not cancel to rounding errors."""
    from hypothesis import strategies

    if base.base_class is BaseClass.BOOL:
        return strategies.booleans()
    if base.base_class is BaseClass.INTEGER:
        return strategies.integers(0 if base.name.startswith("u") else -4, 8)
    whole = strategies.integers(-4, 4).map(float)
    return strategies.one_of(whole, strategies.integers(-8 * 16, 8 * 16).map(lambda n: n / 16))


# ---- text


def call_text(name: str, arguments: Sequence[Any]) -> str:
    """The call as Python, where `np` is NumPy."""
    return f"{name}({', '.join(map(value_text, arguments))})"


def value_text(value: Any) -> str:
    """Python that makes the value again, where it is an array, a number or a structure of them."""
    if isinstance(value, np.ndarray | np.generic | Array):
        return _array_text(np.asarray(value))
    if isinstance(value, Ref):
        return f"relay.ref({value_text(value.value)})"
    if type(value) in (tuple, list):
        inside = ", ".join(map(value_text, value))
        return f"[{inside}]" if type(value) is list else f"({inside}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {value_text(v)}" for k, v in value.items()) + "}"
    if is_record_class(type(value)):
        fields = ", ".join(f"{n}={value_text(getattr(value, n))}" for n in field_names(type(value)))
        return f"{type(value).__qualname__}({fields})"
    parts = parts_of(value)
    if parts is not None and not callable(value):
        return f"{type(value).__qualname__}({', '.join(map(value_text, parts))})"
    return _number_text(value) if isinstance(value, float) else getattr(value, "__name__", None) or repr(value)


def _array_text(array: np.ndarray) -> str:
    library = "ml_dtypes" if array.dtype == np.dtype(ml_dtypes.bfloat16) else "np"
    dtype = f"{library}.{'bool_' if array.dtype.name == 'bool' else array.dtype.name}"
    if array.ndim == 0:
        return f"{dtype}({_number_text(array.item())})"
    if array.size == 0:
        return f"np.zeros({array.shape}, {dtype})"
    return f"np.array({_nested_text(array.tolist(), _number_text)}, {dtype})"


def _nested_text(value: Any, leaf: Callable[[Any], str]) -> str:
    return f"[{', '.join(_nested_text(v, leaf) for v in value)}]" if isinstance(value, list) else leaf(value)


def _number_text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return repr(value)
