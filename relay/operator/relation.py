"""The type of an operator as a relation: a signature over base types, and a function over shapes.

    Relation("T, T -> T", broadcast)         add: one base type, shapes broadcast together
    Relation("T:float -> T", same)           exp: floats only
    Relation("T, T -> bool", broadcast)      less
    Relation("T -> @dtype", same)            cast: the attribute `dtype` names the result's base
    Relation("T.. -> T", concatenate_shape)  concatenate: any number of operands

A token is a base type's name, `@attribute`, or a variable with the classes that it may take: `T` (any), `T:float`,
`T:int`, `T:number` (float or int), `T:int|bool`. An operand `T/int` may be an integer, too, whatever T is: the exponent
of a power in programs as text. In Python programs numbers are what the other operands are, so there it is `T`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
import numpy as np

from relay.errors import RelayError, TypeMismatch
from relay.ir.dims import Dim, DimExpr
from relay.ir.dims import substitute as substitute_dims
from relay.ir.expr import AttributeValue
from relay.ir.sizes.facts import facts
from relay.ir.types import (
    BASE_TYPES,
    BaseClass,
    BaseType,
    DataType,
    FunctionType,
    Kind,
    QuantifiedType,
    Shape,
    SymbolicSize,
    TensorType,
    TupleType,
    Type,
    TypeId,
    map_type_parts,
    show,
)
from relay.operator.lengths import Length, dim_of, is_length, lengths, undetermined_sizes
from relay.operator.undetermined import Undetermined as Undetermined

_CLASSES = {
    "float": {BaseClass.FLOAT},
    "int": {BaseClass.INTEGER},
    "bool": {BaseClass.BOOL},
    "number": {BaseClass.FLOAT, BaseClass.INTEGER},
}


@attrs.frozen
class BaseToken:
    """One place of a base signature: `text` is a variable, a base type's name, or `@attribute`."""

    text: str
    classes: frozenset[BaseClass] | None  # None: any
    or_integer: bool = False  # an operand that may be an integer instead

    @property
    def is_variable(self) -> bool:
        return self.text not in BASE_TYPES and not self.text.startswith("@")


@attrs.frozen
class BaseSignature:
    """`T, T:float -> T`, parsed. With `variadic` the last operand's token repeats."""

    operands: tuple[BaseToken, ...]
    result: BaseToken
    variadic: bool
    text: str

    @staticmethod
    def parse(text: str) -> BaseSignature:
        """Raises ValueError if the text is not a signature."""
        left, arrow, right = text.partition("->")
        if not arrow:
            raise ValueError(f"a base signature needs '->': {text!r}")
        words = [w.strip() for w in left.split(",") if w.strip()]
        variadic = bool(words) and words[-1].endswith("..")
        operands = tuple(_token(w.removesuffix("..")) for w in words)
        return BaseSignature(operands, _token(right.strip()), variadic, text)

    def token(self, position: int) -> BaseToken:
        """The token of an operand."""
        return self.operands[min(position, len(self.operands) - 1) if self.variadic else position]


def _token(word: str) -> BaseToken:
    word, slash, other = word.partition("/")
    if slash and other != "int":
        raise ValueError(f"{other!r} is not `int`, which alone may stand after `/`")
    name, colon, classes = word.partition(":")
    if not name or (colon and not classes):
        raise ValueError(f"{word!r} is not a base type, variable or @attribute")
    found: set[BaseClass] = set()
    for part in classes.split("|") if colon else ():
        if part not in _CLASSES:
            raise ValueError(f"{part!r} is not a class of base types: one of {', '.join(_CLASSES)}")
        found |= _CLASSES[part]
    return BaseToken(name, frozenset(found) if colon else None, bool(slash))


def _signature(base: str | BaseSignature) -> BaseSignature:
    return BaseSignature.parse(base) if isinstance(base, str) else base


@attrs.frozen
class Relation:
    """The type of an operator over tensors.

    `shape(shape_1, .., **attributes)` gets each operand's shape, whose rank is known (a variadic operator: one tuple of
    shapes), and returns the result's. It raises ShapeError (or TypeMismatch) without a span, or `Undetermined`.
    """

    base: BaseSignature = attrs.field(converter=_signature)
    shape: Callable[..., Shape]

    def apply(self, shapes: Sequence[Shape], variadic: bool, attributes: Mapping[str, Any]) -> Shape:
        """The result's shape. The package's own rules know dims; one of a user's gets them as numbers or `Length`s, and
        raises TypeMismatch where it fails or gives no shape."""
        if _knows_dims(self.shape):
            return self.shape(*((tuple(shapes),) if variadic else shapes), **attributes)
        given = lengths(shapes)
        name = getattr(self.shape, "__name__", repr(self.shape))
        try:
            found = self.shape(*((tuple(given),) if variadic else given), **attributes)
        except (RelayError, Undetermined):
            raise
        except Exception as error:
            if any(isinstance(d, Length) for shape in given for d in shape):  # it may work with numbers
                raise undetermined_sizes(shapes) from error
            raise TypeMismatch(f"the shape rule {name} failed: {error}") from error
        if not isinstance(found, tuple | list):
            raise TypeMismatch(f"the shape rule {name} returned {found!r}, which is not a shape")
        return tuple(extent(dim, name, found) for dim in found)


def extent(given: object, rule: str, shape: Sequence[object]) -> Dim:
    """A dim that a user's shape rule has returned. Raises TypeMismatch for what is none, and for less than 0."""
    dim = int(given) if isinstance(given, np.integer) else dim_of(given)
    if isinstance(dim, bool) or not is_length(dim):
        raise TypeMismatch(
            f"the shape rule {rule} returned {tuple(shape)!r}, and {given!r} is not an extent of an axis"
        )
    if facts().need(dim, 0) is False:
        raise TypeMismatch(f"the shape rule {rule} returned {tuple(shape)!r}, and no extent is less than 0")
    return dim


def apply_types(name: str, rule: Callable[..., Type], types: Sequence[object], attributes: Mapping[str, Any]) -> Type:
    """The result's type by a function of types. Raises TypeMismatch where one of a user's fails, or gives no type of
    tensors."""
    if _knows_dims(rule):
        return rule(*types, **attributes)
    try:
        found = rule(*types, **attributes)
    except (RelayError, Undetermined, SymbolicSize):
        raise
    except Exception as error:
        raise TypeMismatch(f"the type rule of {name} failed: {error}") from error
    for part in found.items if isinstance(found, TupleType) else (found,):
        if not isinstance(part, TensorType):
            raise TypeMismatch(f"the type rule of {name} returned {found!r}, which is not a type of tensors")
        for dim in part.shape:
            if not isinstance(dim, TypeId):
                extent(dim, name, part.shape)
    return found


_Function = TypeVar("_Function", bound=Callable[..., object])


def of_numbers(relation: Relation) -> Callable[[_Function], _Function]:
    """Mark an operator's type that is a function with the relation that it is for numbers."""

    def mark(function: _Function) -> _Function:
        function.__of_numbers__ = relation  # type: ignore[attr-defined]
        return function

    return mark


def _knows_dims(rule: Callable[..., object]) -> bool:
    while isinstance(rule, functools.partial):
        rule = rule.func
    return str(getattr(rule, "__module__", "")).startswith("relay.")


def class_names(classes: frozenset[BaseClass]) -> str:
    """Classes for a message: "a float or an integer dtype"."""
    words = {BaseClass.FLOAT: "a float", BaseClass.INTEGER: "an integer", BaseClass.BOOL: "a bool"}
    return " or ".join(words[c] for c in BaseClass if c in classes) + " dtype"


def infer_relation(
    name: str, relation: Relation, variadic: bool, types: Sequence[Type], attributes: Mapping[str, AttributeValue]
) -> TensorType:
    """The result type for operands whose types are completely known. Raises TypeMismatch."""
    tensors = []
    for position, type_ in enumerate(types):
        if not isinstance(type_, TensorType):
            raise TypeMismatch(f"operand {position + 1} of {name} must be a tensor, found {show(type_)}")
        tensors.append(type_)
    bound: dict[str, BaseType] = {}
    for position, tensor in enumerate(tensors):
        token, base = relation.base.token(position), tensor.base
        assert isinstance(base, BaseType)
        if token.or_integer and base.base_class is BaseClass.INTEGER and bound[token.text].is_float:
            continue
        if token.classes is not None and base.base_class not in token.classes:
            raise TypeMismatch(f"{name} needs {class_names(token.classes)}, found {base}")
        expected = bound.setdefault(token.text, base) if token.is_variable else BASE_TYPES[token.text]
        if base != expected:
            raise TypeMismatch(
                f"{name} needs operands of one dtype, found {expected} and {base}"
                if token.is_variable
                else f"operand {position + 1} of {name} must be {expected}, found {base}"
            )
    token = relation.base.result
    result: object
    if token.text.startswith("@"):
        result = attributes[token.text[1:]]
    else:
        result = bound[token.text] if token.is_variable else BASE_TYPES[token.text]
    if not isinstance(result, BaseType):
        raise TypeMismatch(f"the {token.text[1:]} of {name} must be a dtype, found {result!r}")
    shapes = [t.shape for t in tensors]
    return TensorType(result, relation.apply(shapes, variadic, attributes))


def infer_function_type(name: str, type_: QuantifiedType | FunctionType, types: Sequence[Type]) -> Type:
    """The result type of an operator with a quantified function type, for known operands. Raises TypeMismatch."""
    function = type_.body if isinstance(type_, QuantifiedType) else type_
    assert isinstance(function, FunctionType)
    if len(function.parameters) != len(types):
        raise TypeMismatch(f"{name} takes {len(function.parameters)} arguments, found {len(types)}")
    bound: dict[TypeId, object] = {}
    for position, (pattern, found) in enumerate(zip(function.parameters, types, strict=True)):
        if not _match(pattern, found, bound):
            wanted = show(substitute(pattern, bound))
            raise TypeMismatch(f"argument {position + 1} of {name} must be {wanted}, found {show(found)}")
    return substitute(function.result, bound)


def _match(pattern: Type, found: Type, bound: dict[TypeId, object]) -> bool:
    match pattern:
        case TypeId():
            return bound.setdefault(pattern, found) == found
        case TensorType(base, shape):
            if not isinstance(found, TensorType):
                return False
            if isinstance(base, TypeId):
                if bound.setdefault(base, found.base) != found.base:
                    return False
            elif base != found.base:
                return False
            return _match_shape(shape, found.shape, bound)
        case TupleType(items):
            return (
                isinstance(found, TupleType)
                and len(items) == len(found.items)
                and all(_match(p, f, bound) for p, f in zip(items, found.items, strict=True))
            )
        case _:
            return pattern == found


def _match_shape(pattern: Shape, found: Shape, bound: dict[TypeId, object]) -> bool:
    """One shape variable at most; it takes what the dims around it leave."""
    places = [i for i, d in enumerate(pattern) if isinstance(d, TypeId) and d.kind is Kind.Shape]
    if places:
        at = places[0]
        tail = len(pattern) - at - 1
        if len(places) > 1 or len(found) < at + tail:
            return False
        middle = found[at : len(found) - tail]
        if bound.setdefault(pattern[at], middle) != middle:  # type: ignore[arg-type]
            return False
        pattern, found = pattern[:at] + pattern[at + 1 :], found[:at] + found[len(found) - tail :]
    if len(pattern) != len(found):
        return False
    for wanted, dim in zip(pattern, found, strict=True):
        if (
            not isinstance(wanted, DimExpr)
            and (bound.setdefault(wanted, dim) if isinstance(wanted, TypeId) else wanted) != dim
        ):
            return False
    return all(
        facts().equal(_substitute_dim(wanted, bound), dim) is True  # type: ignore[arg-type]
        for wanted, dim in zip(pattern, found, strict=True)
        if isinstance(wanted, DimExpr)
    )


def substitute(type_: Type, bound: Mapping[TypeId, object]) -> Type:
    """The type with its variables replaced where they are bound."""
    match type_:
        case TypeId():
            return bound.get(type_, type_)  # type: ignore[return-value]
        case TensorType(base, shape):
            dims: list[object] = []
            for dim in shape:
                value = _substitute_dim(dim, bound)
                dims += value if isinstance(value, tuple) else (value,)
            known = bound.get(base, base) if isinstance(base, TypeId) else base
            return TensorType(known, tuple(dims), type_.axes)  # type: ignore[arg-type]
        case QuantifiedType(identifiers, body):
            free = {v: t for v, t in bound.items() if v not in identifiers}
            return QuantifiedType(identifiers, substitute(body, free))
        case DataType(definition, arguments):
            return DataType(definition, tuple(_substitute_argument(a, bound) for a in arguments))
        case _:
            return map_type_parts(type_, lambda part: substitute(part, bound))


def _substitute_dim(dim: object, bound: Mapping[TypeId, object]) -> object:
    if isinstance(dim, DimExpr):
        return substitute_dims(dim, lambda v: bound.get(v, v) if isinstance(v, TypeId) else v)  # type: ignore[arg-type, return-value]
    return bound.get(dim, dim) if isinstance(dim, TypeId) else dim


def _substitute_argument(argument: object, bound: Mapping[TypeId, object]) -> Any:
    """The argument of a data type: a shape is a tuple of dims."""
    if isinstance(argument, tuple):
        dims: list[object] = []
        for dim in argument:
            value = _substitute_dim(dim, bound)
            dims += value if isinstance(value, tuple) else (value,)
        return tuple(dims)
    if isinstance(argument, TypeId | DimExpr):
        return _substitute_dim(argument, bound)
    return substitute(argument, bound)  # type: ignore[arg-type]
