"""Shapes in jaxtyping's notation: `Float[Array, "*batch n+1 3"]`.

A name is the same size in all annotations of a function, `*name` several of them, `_` any size, `...` any number of
axes. What is said about broadcasting (`#n`) and structures (`?n`) is not checked.
"""

from __future__ import annotations

import ast

from relay.errors import FrontendError
from relay.ir import dims
from relay.ir.types import ANY, BaseClass, BaseType, Dim, ElementTypes, Kind, TensorType, TypeId

_ARITHMETIC = {
    ast.Add: dims.add,
    ast.Sub: dims.subtract,
    ast.Mult: dims.multiply,
    ast.FloorDiv: dims.floor_divide,
}
_DTYPES = {
    **{f"{kind}{bits}": f"{kind.lower()}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    "Float16": "float16",
    "Float32": "float32",
    "Float64": "float64",
    "BFloat16": "bfloat16",
    "Bool": "bool",
}
_CLASSES = {
    **dict.fromkeys(("Float", "Inexact"), frozenset({BaseClass.FLOAT})),
    **dict.fromkeys(("Int", "UInt", "Integer"), frozenset({BaseClass.INTEGER})),
    **dict.fromkeys(("Num", "Real"), frozenset({BaseClass.FLOAT, BaseClass.INTEGER})),
}


def is_array(head: object) -> bool:
    """True for `Float`, `Int32`, .. of jaxtyping."""
    return str(getattr(head, "__module__", "")).partition(".")[0] == "jaxtyping"


def array_type(head: object, text: str, sizes: dict[str, TypeId]) -> TensorType:
    """The type of an array with these dims. `sizes` has those that the function's annotations have named, and gets
    more. Raises FrontendError."""
    name = str(getattr(head, "__name__", head))
    base = BaseType(_DTYPES[name]) if name in _DTYPES else ElementTypes(name.lower(), Kind.BaseType, _CLASSES.get(name))
    shape = tuple(_dim(word.partition("=")[2] or word, sizes) for word in text.split())
    return TensorType(base, shape)


def _dim(word: str, sizes: dict[str, TypeId]) -> Dim:
    if word == "...":
        return TypeId("axes", Kind.Shape)
    name = word.lstrip("*")
    if word.startswith("*") and (name.isidentifier() or not name):
        return TypeId("axes", Kind.Shape) if name in ("", "_") else _variable(name, Kind.Shape, sizes)
    if word.startswith(("#", "?", "_")):
        return ANY
    try:
        found = _size_of(ast.parse(word, mode="eval").body, sizes)
    except SyntaxError:
        found = None
    if found is None:
        help = "write sizes with blanks between them: names, numbers, `*names`, `_`, `...`, and sums such as `n+1`"
        raise FrontendError(f"`{word}` is not a dimension", help=help)
    return found


def _size_of(node: ast.expr, sizes: dict[str, TypeId]) -> Dim | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return _variable(name, Kind.Dim, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = _size_of(left, sizes), _size_of(right, sizes)
            return None if one is None or other is None else _ARITHMETIC[type(op)](one, other)
        case _:
            return None


def _variable(name: str, kind: Kind, sizes: dict[str, TypeId]) -> TypeId:
    found = sizes.setdefault(name, TypeId(name, kind))
    if found.kind is not kind:
        raise FrontendError(
            f"{name} is one size in one place, and several in another", help=f"use another name than {name}"
        )
    return found
