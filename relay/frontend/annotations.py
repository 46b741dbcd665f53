"""Annotations, read from the syntax tree.

    T ::= Tensor[B, S] | Tensor[B, S, NCHW] | Tensor[B, dict(batch=D, ..)] | tuple[T, ..] | Fn[[T, ..], T]
          | PureFn[[T, ..], T] | Ref[T] | D | D[T, ..] | int | float | bool | None | a name of a type | "T"
    a parameter: T | Forall[[variable, ..], Fn[[T, ..], T]]
    B ::= Float | Int64 | ..  | a base type variable
    S ::= (D, ..) | a shape variable
    D ::= 3 | n | Any | *s | D + D | D - D | D * D | D // D | D % D | max(D, ..) | min(D, ..)

Names are looked up in the scope of the function, without running the annotation. What users write these with is in
`relay.ir.annotations.annotation` and exported here as well.
"""

from __future__ import annotations

import ast
import difflib
import typing
from collections.abc import Callable
from typing import TypeVar

import attrs

from relay.errors import FrontendError, Span
from relay.frontend.analysis import foreign_shapes
from relay.frontend.source import SourceFile
from relay.ir import dims as arithmetic
from relay.ir.annotations.annotation import (
    FORALL_HELP,
    FUNCTION_HELP,
    REFERENCE_HELP,
    TENSOR_HELP,
    Fn,
    Forall,
    PureFn,
    Ref,
    Tensor,
    argument_count,
    axis_names,
    base_type_var,
    describe_object,
    dims,
    forall,
    shape_var,
    to_base,
    to_dim,
    to_shape,
    to_type,
    type_var,
)
from relay.ir.annotations.type_parameters import is_alias, is_parameter, known_variable
from relay.ir.annotations.type_parameters import variable as type_variable
from relay.ir.axes import NAMES_HELP
from relay.ir.definition import MISSING, DataClass, Scope, data_class
from relay.ir.types import (
    Base,
    DataType,
    Dim,
    FunctionType,
    Kind,
    RefType,
    Shape,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
)
from relay.operator.relation import substitute

__all__ = [
    "AnnotationReader",
    "Fn",
    "Forall",
    "PureFn",
    "Ref",
    "Tensor",
    "UndefinedName",
    "base_type_var",
    "dims",
    "shape_var",
    "type_var",
]

_T = TypeVar("_T")

_ARITHMETIC: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.subtract,
    ast.Mult: arithmetic.multiply,
    ast.FloorDiv: arithmetic.floor_divide,
    ast.Mod: arithmetic.modulo,
}
_EXTREMA: dict[object, Callable[..., Dim]] = {max: arithmetic.maximum, min: arithmetic.minimum}
_LARGEST_POWER = 8


class UndefinedName(FrontendError):
    """An annotation names something that the scope does not have."""


def _nothing_is_local(name: str) -> bool:
    return False


@attrs.frozen(eq=False)
class AnnotationReader:
    """Reads annotations of one function. `is_local` tells its variables, whose values a type cannot depend on."""

    file: SourceFile
    scope: Scope
    is_local: Callable[[str], bool] = _nothing_is_local
    sizes: dict[str, TypeId] = attrs.field(factory=dict)  # those that annotations of other libraries name
    whole: Span | None = None  # inside of a string annotation: the place of every error

    def type(self, node: ast.expr) -> Type:
        """The type that an annotation means. Raises FrontendError at the part that means nothing."""
        match node:
            case ast.Constant(value=None):
                return to_type(None)
            case ast.Constant(value=str(text)):
                return self._string(node, lambda inside, tree: inside.type(tree), text)
            case ast.Subscript(value=head, slice=inside):
                return self._application(node, self._object(head), inside)
            case ast.Name() | ast.Attribute():
                found = self._object(node)
                return self._convert_at(node, lambda: to_type(found))
            case ast.Tuple():
                raise self._error(node, "a tuple is not a type", "write tuple[A, B]")
            case ast.BinOp(op=ast.BitOr()):
                raise self._error(
                    node, "a value has one type; there are no unions", "write two functions, or a data type"
                )
            case _:
                raise self._error(node, "this is not a type", TENSOR_HELP)

    def parameter(self, node: ast.expr, may_be_none: bool = False) -> Type:
        """The type of a parameter, which may be a polymorphic function; `A | None` is A for one whose default is
        None (`may_be_none`). Raises FrontendError."""
        other = self._or_none(node)
        if other is not None and not may_be_none:
            what = "a parameter that may be None must have None as its default"
            raise self._error(node, what, "write `= None` after the annotation, or take an Option")
        if other is not None:
            return self.parameter(other)
        match node:
            case ast.Constant(value=str(text)):
                return self._string(node, lambda inside, tree: inside.parameter(tree, may_be_none), text)
            case ast.Subscript(value=head, slice=inside) if self._object(head) is Forall:
                items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                if len(items) != 2 or not isinstance(items[0], ast.List):
                    raise self._error(node, "Forall takes a list of variables and a function type", FORALL_HELP)
                body = self.type(items[1])  # which says of what kind a type parameter of Python is
                variables = [known_variable(self._object(v)) for v in items[0].elts]
                return self._convert_at(node, lambda: forall(variables, body))
            case _:
                return self.type(node)

    def _application(self, node: ast.expr, head: object, inside: ast.expr) -> Type:
        items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if foreign_shapes.is_array(head):
            return self._foreign_array(node, head, items)
        if head is Tensor:
            if len(items) not in (2, 3) or (len(items) == 3 and self._is_dim(items[1])):
                message = (
                    f"Tensor takes an element type and a shape, found {len(items)} argument{'s' * (len(items) != 1)}"
                )
                raise self._error(node, message, TENSOR_HELP)
            return self._tensor(node, items)
        if head is Fn or head is PureFn:
            if len(items) != 2 or not isinstance(items[0], ast.List):
                raise self._error(node, "Fn takes a list of parameter types and a result type", FUNCTION_HELP)
            parameters = tuple(self.type(item) for item in items[0].elts)
            return FunctionType(parameters, self.type(items[1]), effects=() if head is PureFn else None)
        if head is Forall:
            raise self._error(node, "a polymorphic function is a whole parameter of a function", FORALL_HELP)
        if head is Ref:
            if len(items) != 1:
                raise self._error(node, f"Ref takes one type, found {len(items)}", REFERENCE_HELP)
            return RefType(self.type(items[0]))
        if head is tuple or head is typing.Tuple:  # noqa: UP006
            for item in items:
                if isinstance(item, ast.Constant) and item.value is Ellipsis:
                    raise self._error(item, "a tuple type lists all its items", "write tuple[A, A, A]")
            return TupleType(tuple(self.type(item) for item in items))
        if head is list or head is typing.List:  # noqa: UP006
            if len(items) != 1:
                raise self._error(node, "a list type has one argument, the type of its elements", "write list[A]")
            return StackType(RefType(self.type(items[0])))
        owner = data_class(head)
        if owner is not None:
            return self._data(node, owner, items)
        if is_alias(head):
            return self._alias(node, head, items)
        raise self._error(
            node,
            f"{describe_object(head)} takes no arguments in a type",
            "write Tensor[..], tuple[..], list[..], Fn[..] or Ref[..]",
        )

    def _foreign_array(self, node: ast.expr, head: object, items: list[ast.expr]) -> TensorType:
        """`Float[Array, "n d"]` of jaxtyping."""
        text = items[-1].value if isinstance(items[-1], ast.Constant) else None
        if len(items) != 2 or not isinstance(text, str):
            raise self._error(node, "an array of jaxtyping has a class and its dims", 'write Float[Array, "n d"]')
        return self._convert_at(items[-1], lambda: foreign_shapes.array_type(head, text, self.sizes))

    def _is_dim(self, node: ast.expr) -> bool:
        """True if this is one dim, where a shape belongs."""
        if isinstance(node, ast.Name | ast.Attribute):
            found = self._object(node)
            return isinstance(found, int) or (isinstance(found, TypeId) and found.kind is Kind.Dim)
        return isinstance(node, ast.Constant | ast.BinOp)

    def _tensor(self, node: ast.expr, items: list[ast.expr]) -> TensorType:
        """`Tensor[B, S]`, `Tensor[B, S, NCHW]`, `Tensor[B, dict(batch=n)]`."""
        base = self._base(items[0])
        fields = self._named_dims(items[1])
        if fields is not None and len(items) == 2:
            names, shape = [name for name, _ in fields], tuple(self._dim(dim) for _, dim in fields)
            return TensorType(base, shape, self._convert_at(items[1], lambda: axis_names(names, shape)))
        shape = self._shape(items[1])
        given = None if len(items) == 2 else self._names(items[2])
        return TensorType(base, shape, self._convert_at(items[-1], lambda: axis_names(given, shape)))

    def _named_dims(self, node: ast.expr) -> list[tuple[object, ast.expr]] | None:
        """The names and dims of `dict(batch=n)` or `{"batch": n}`."""
        match node:
            case ast.Call(func=ast.Name() as function, args=[], keywords=keywords) if self._object(function) is dict:
                return [(keyword.arg, keyword.value) for keyword in keywords]
            case ast.Dict(keys=keys, values=values) if all(keys):
                return [(self._names(key), value) for key, value in zip(keys, values, strict=True)]  # type: ignore[arg-type]
            case _:
                return None

    def _names(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self._names(item) for item in items)
            case ast.Name() | ast.Attribute():
                return self._object(node)
            case _:
                raise self._error(node, "this names no axes", NAMES_HELP)

    def _data(self, node: ast.expr, owner: DataClass, items: list[ast.expr]) -> DataType:
        """`Tree[A]`: arguments for the parameters of a data type."""
        owner.complete()
        parameters = owner.definition.parameters
        being_read = not owner.definition.constructors
        kinds = [Kind.Type] * len(items) if being_read else [p.kind for p in parameters]
        readers = self._readers
        if len(items) != len(kinds):
            raise self._error(node, argument_count(owner, len(items)), None)
        return DataType(
            owner.definition, tuple(readers.get(k, self.type)(item) for k, item in zip(kinds, items, strict=True))
        )

    def _alias(self, node: ast.expr, alias: object, items: list[ast.expr]) -> Type:
        """`Matrix[n]`: arguments for the parameters of a `type` statement."""
        body = self._convert_at(node, lambda: to_type(alias))
        parameters = [known_variable(p) for p in getattr(alias, "__type_params__", ())]
        starred = [i for i, p in enumerate(parameters) if isinstance(p, TypeId) and p.kind is Kind.Shape]
        if len(starred) == 1 and len(items) >= len(parameters) - 1:  # it takes what the others leave
            at, end = starred[0], len(items) - (len(parameters) - 1 - starred[0])
            rest = items[at:end]
            single = len(rest) == 1 and isinstance(rest[0], ast.Tuple)
            items = [*items[:at], rest[0] if single else ast.Tuple(rest, ast.Load()), *items[end:]]
        if len(items) != len(parameters):
            count = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
            text = f"{alias} takes {count}, found {len(items)}"
            raise self._error(node, text, f"write {alias}[{', '.join(map(str, parameters))}]" if parameters else None)
        bound: dict[TypeId, object] = {}
        for parameter, item in zip(parameters, items, strict=True):
            if isinstance(parameter, TypeId):  # otherwise the alias does not use it
                bound[parameter] = self._readers.get(parameter.kind, self.type)(item)
        return substitute(body, bound)

    @property
    def _readers(self) -> dict[Kind, Callable[[ast.expr], Type | Base | Shape | Dim]]:
        return {Kind.BaseType: self._base, Kind.Shape: self._shape, Kind.Dim: self._dim}

    def _base(self, node: ast.expr) -> Base:
        if isinstance(node, ast.Subscript):
            raise self._error(
                node,
                f"the elements of a tensor are numbers, not {ast.unparse(node)}",
                "write one shape for all axes, as in Tensor[Float, (3, 2)]; other values go into tuples and data types",
            )
        if not isinstance(node, ast.Name | ast.Attribute):
            raise self._error(node, "this is not an element type", "write Float, Float64, Int, Bool, ...")
        found = self._object(node)
        return self._convert_at(node, lambda: to_base(found))

    def _shape(self, node: ast.expr) -> Shape:
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self._dim(item) for item in items)
            case ast.Name() | ast.Attribute():
                found = self._object(node)
                return self._convert_at(node, lambda: to_shape(found))
            case ast.Constant(value=int(number)):
                message = f"the shape of a tensor is a tuple, found {number}"
                raise self._error(node, message, f"write ({number},) for one dimension")
            case ast.BinOp():
                raise self._error(
                    node, "the shape of a tensor is a tuple", f"write ({ast.unparse(node)},) for one dimension"
                )
            case _:
                raise self._error(node, "this is not a shape", TENSOR_HELP)

    def _dim(self, node: ast.expr) -> Dim:
        match node:
            case ast.Constant(value=value):
                return self._convert_at(node, lambda: to_dim(value))
            case ast.Name() | ast.Attribute():
                found = self._object(node)
                return self._convert_at(node, lambda: to_dim(found))
            case ast.Starred(value=ast.Name() | ast.Attribute() as variable):
                found = self._object(variable)
                if is_parameter(found):
                    return self._convert_at(node, lambda: type_variable(found, Kind.Shape))
                if not isinstance(found, TypeId) or found.kind is not Kind.Shape:
                    raise self._error(
                        node, f"{ast.unparse(variable)} is not a shape variable", 'make one by s = shape_var("s")'
                    )
                return found
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                negative = arithmetic.subtract(0, self._operand(operand))
                return self._convert_at(node, lambda: to_dim(negative))
            case ast.BinOp(left=left, op=op, right=right):
                found = self._arithmetic(node, self._operand(left), op, self._operand(right))
                return self._convert_at(node, lambda: to_dim(found))
            case ast.Call(func=ast.Name() | ast.Attribute() as function, args=items, keywords=[]) if items:
                extremum = _EXTREMA.get(self._object(function))
                if extremum is None:
                    raise self._error(node, "this is not a dimension", "only the functions max and min are available")
                return extremum(*map(self._operand, items))
            case _:
                raise self._error(
                    node, "this is not a dimension", 'write a number, Any, or a variable made by `n, m = dims("n m")`'
                )

    def _operand(self, node: ast.expr) -> Dim:
        """A dim in an expression of dims, where it may be negative."""
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return arithmetic.subtract(0, self._operand(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(node, self._operand(left), op, self._operand(right))
            case _:
                dim = self._dim(node)
        if isinstance(dim, TypeId) and dim.kind is not Kind.Dim:
            raise self._error(node, f"{dim} stands for any number of dims; arithmetic is for single dims", None)
        return dim

    def _arithmetic(self, node: ast.expr, left: Dim, op: ast.operator, right: Dim) -> Dim:
        if isinstance(op, ast.Pow) and isinstance(right, int) and 0 <= right <= _LARGEST_POWER:
            return arithmetic.product([left] * right)
        apply = _ARITHMETIC.get(type(op))
        if apply is None:
            raise self._error(node, "dimensions have no such operation", "use +, -, *, //, %, max or min")
        try:
            return apply(left, right)
        except ZeroDivisionError:
            raise self._error(node, "a division by zero", None) from None

    def _or_none(self, node: ast.expr) -> ast.expr | None:
        """The other part of `A | None`, `Optional[A]` and `Union[A, None]`; None for anything else."""
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                parts = [left, right]
            case ast.Subscript(value=head, slice=inside) if self._object(head) in (typing.Optional, typing.Union):
                parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
                if self._object(head) is typing.Optional:
                    parts.append(ast.Constant(None))
            case _:
                return None
        others = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
        return others[0] if len(others) == 1 < len(parts) else None

    def _string(self, node: ast.expr, read: Callable[[AnnotationReader, ast.expr], Type], text: str) -> Type:
        span = self._span(node)
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise FrontendError(f"this annotation is not valid Python: {error.msg}", span) from None
        return read(attrs.evolve(self, whole=span), tree.body)

    def _object(self, node: ast.expr) -> object:
        """The object that a dotted name means in the scope."""
        match node:
            case ast.Name(id=name):
                if self.is_local(name):
                    message = f"`{name}` is a variable of the function; a type cannot depend on its value"
                    raise self._error(node, message, "write Any for a dimension that is only known at run time")
                found = self.scope.resolve(name)
                if found is MISSING:
                    raise UndefinedName(
                        f"the name `{name}` is not defined here", self._span(node), help=self._suggestion(name)
                    )
                getattr(found, "__relay_type__", None)  # what only importing a file can tell says so here
                return found
            case ast.Attribute(value=value, attr=name):
                around = self._object(value)
                found = getattr(around, name, MISSING)
                if found is MISSING:
                    raise self._error(node, f"{ast.unparse(value)} has no attribute `{name}`", None)
                return found
            case _:
                raise self._error(node, "this is not a type", TENSOR_HELP)

    def _suggestion(self, name: str) -> str:
        if hasattr(typing, name):
            return f"import it before the function is decorated: from typing import {name}"
        close = difflib.get_close_matches(name, self.scope.names(), n=1)
        if close:
            return f"did you mean `{close[0]}`?"
        if name[:1].islower():
            return f'make a dim variable before the function: ({name},) = dims("{name}")'
        return f"import it before the function is decorated: from relay import {name}"

    def _convert_at(self, node: ast.expr, convert: Callable[[], _T]) -> _T:
        try:
            return convert()
        except FrontendError as error:
            raise error.with_span(self._span(node)) from None

    def _span(self, node: ast.expr) -> Span:
        return self.whole if self.whole is not None else self.file.span(node)

    def _error(self, node: ast.expr, message: str, help: str | None) -> FrontendError:
        return FrontendError(message, self._span(node), help=help)
