"""Operators under the names that NumPy has for them: `np.sum`, `np.linalg.trace`, and the methods of its arrays.

They are called as NumPy's signatures say, which differ from those of the operators in the order and names of arguments
and in defaults, and mean what they mean there. An argument that the operator has no meaning for may only have a value
that changes nothing; all others are errors that say what to write. Elementwise functions take operands only, in NumPy
as here, and need none of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.types import BOOL, INT32, UINT32, BaseClass, BaseType, TensorType, prune
from relay.operator import lookup
from relay.operator import resolve_name as resolve_operator
from relay.support.foreign_names import argument_help
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    NumpyFunction,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.attributes import checked_attribute, normalize_attribute, static_value
from relay.typecheck.elaboration.library import numpy_matrices
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.tensors import tensor_type

Keywords = Sequence[tuple[str, AbstractValue]]

_SIGNATURES: dict[str, Callable[..., None]] = {
    "all": lambda a, axis=None, out=None, keepdims=False, *, where=True: None,
    "any": lambda a, axis=None, out=None, keepdims=False, *, where=True: None,
    "argmax": lambda a, axis=None, out=None, *, keepdims=False: None,
    "argmin": lambda a, axis=None, out=None, *, keepdims=False: None,
    "argsort": lambda a, axis=-1, kind=None, order=None, *, stable=None: None,
    "broadcast_to": lambda array, shape, subok=False: None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "copy": lambda a, order="K", subok=False: None,
    "cumprod": lambda a, axis=None, dtype=None, out=None: None,
    "cumsum": lambda a, axis=None, dtype=None, out=None: None,
    "diag": lambda v, k=0: None,
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: None,
    "dot": lambda a, b, out=None: None,
    "einsum": lambda *operands, out=None, optimize=False, dtype=None, order="K", casting="safe": None,
    "expand_dims": lambda a, axis: None,
    "eye": lambda N, M=None, k=0, dtype=None, order="C", *, device=None, like=None: None,
    "fix": lambda x, out=None: None,
    "flip": lambda m, axis=None: None,
    "full": lambda shape, fill_value, dtype=None, order="C", *, device=None, like=None: None,
    "full_like": lambda a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "linspace": lambda start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None: None,
    "max": lambda a, axis=None, out=None, keepdims=False, initial=None, where=True: None,
    "mean": lambda a, axis=None, dtype=None, out=None, keepdims=False, *, where=True: None,
    "meshgrid": lambda *xi, copy=True, sparse=False, indexing="xy": None,
    "min": lambda a, axis=None, out=None, keepdims=False, initial=None, where=True: None,
    "moveaxis": lambda a, source, destination: None,
    "ones": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "ones_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "outer": lambda a, b, out=None: None,
    "pad": lambda array, pad_width, mode="constant", *, constant_values=0: None,
    "prod": lambda a, axis=None, dtype=None, out=None, keepdims=False, initial=1, where=True: None,
    "ravel": lambda a, order="C": None,
    "repeat": lambda a, repeats, axis=None: None,
    "reshape": lambda a, /, shape, order="C", *, copy=None: None,
    "roll": lambda a, shift, axis=None: None,
    "round": lambda a, decimals=0, out=None: None,
    "searchsorted": lambda a, v, side="left", sorter=None: None,
    "sort": lambda a, axis=-1, kind=None, order=None, *, stable=None: None,
    "split": lambda ary, indices_or_sections, axis=0: None,
    "squeeze": lambda a, axis=None: None,
    "stack": lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "std": lambda a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=0: (
        None
    ),
    "sum": lambda a, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True: None,
    "swapaxes": lambda a, axis1, axis2: None,
    "take": lambda a, indices, axis=None, out=None, mode="raise": None,
    "take_along_axis": lambda arr, indices, axis=-1: None,
    "tensordot": lambda a, b, axes=2: None,
    "tile": lambda A, reps: None,
    "trace": lambda a, offset=0, axis1=0, axis2=1, dtype=None, out=None: None,
    "transpose": lambda a, axes=None: None,
    "tri": lambda N, M=None, k=0, dtype=None, *, like=None: None,
    "tril": lambda m, k=0: None,
    "triu": lambda m, k=0: None,
    "var": lambda a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=0: (
        None
    ),
    "where": lambda condition, x, y, /: None,
    "zeros": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "zeros_like": lambda a, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "linalg.cholesky": lambda a, /, *, upper=False: None,
    "linalg.diagonal": lambda x, /, *, offset=0: None,
    "linalg.matmul": lambda x1, x2, /: None,
    "linalg.norm": lambda x, ord=None, axis=None, keepdims=False: None,
    "linalg.outer": lambda x1, x2, /: None,
    "linalg.tensordot": lambda x1, x2, /, *, axes=2: None,
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: None,
}
"""NumPy's signatures; a default of an argument that an operator has no meaning for changes nothing."""

_OPERATORS = {"ravel": "flatten", "fix": "trunc", "dot": "matmul"}
"""What the operator is called, where that is another name."""

_ATTRIBUTES = {"N": "n", "M": "m", "fill_value": "value", "pad_width": "widths", "constant_values": "value"}
"""What an operator calls NumPy's argument."""

METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean",
    "min", "prod", "ravel", "repeat", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
)  # fmt: skip
"""The methods of arrays that are these functions, with the array as their first argument."""

_HARMLESS: dict[str, tuple[object, ...]] = {
    "casting": ("same_kind", "safe", "unsafe"),
    "copy": (None, True, False),
    "device": (None, "cpu"),
    "kind": (None, "quicksort", "mergesort", "heapsort", "stable"),
    "optimize": (True, False, "greedy", "optimal"),
    "stable": (None, True, False),
    "subok": (True, False),
}
"""Values of arguments that change nothing of the elements of a result."""

_CHANGED = ("axis", "axis1", "axis2", "correction", "decimals", "dtype")
"""Arguments that rules below give a meaning."""

_INSTEAD = {
    "out": "values never change: assign the result",
    "where": "choose before: np.sum(np.where(mask, x, 0.0))",
    "initial": "combine the result with it",
    "dtype": "convert: x.astype(dtype)",
    "order": "elements follow each other along the last axis; np.transpose(x) turns it",
    "sorter": "sort before: np.searchsorted(np.sort(x), v)",
    "sparse": "reshape: x[:, None], y[None, :]",
    "retstep": "compute it: (stop - start) / (num - 1)",
    "upper": "the upper one is np.linalg.cholesky(a).T",
    "mean": "it is computed once in any case",
}


def numpy_function(function: object) -> NumpyFunction | None:
    """What a function of NumPy is here; None for one that is an operator by itself, and for all others."""
    name = getattr(function, "__name__", "")
    if isinstance(function, np.ufunc) or not isinstance(name, str):
        return None
    is_linear = (getattr(function, "__module__", None) or "") == "numpy.linalg"
    return _numpy_function(f"linalg.{name}" if is_linear else name, name)


def method(name: str) -> NumpyFunction | None:
    """What a method of NumPy's arrays is here; None for all others."""
    return _numpy_function("ravel" if name == "flatten" else name, name) if name in METHODS else None


def _numpy_function(key: str, name: str) -> NumpyFunction | None:
    operator = resolve_operator(_OPERATORS.get(name, name)) if key in _SIGNATURES else None
    return None if operator is None else NumpyFunction(key, operator, _required_count(key))


def _required_count(key: str) -> int:
    """How many arguments a call needs."""
    parameters = inspect.signature(_SIGNATURES[key]).parameters.values()
    return sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)


@attrs.define
class _Call:
    """A call whose arguments are the operator's: `operands` by position and `attributes` by name."""

    checker: Checker
    out: TypedBlockBuilder
    function: NumpyFunction
    operands: list[AbstractValue]
    attributes: dict[str, AbstractValue]
    span: Span | None
    described: Sequence[str]

    def static(self, name: str) -> object:
        """The value of an attribute; None where it is not given."""
        entity = self.attributes.get(name)
        return None if entity is None else static_value(entity, name, self.span)

    def apply(self, name: str, *operands: AbstractValue, **attributes: object) -> DynamicValue:
        """An operator of this name."""
        return operators.apply(self.checker, self.out, lookup(name), list(operands), attributes, self.span, [])

    def dtype(self) -> BaseType | None:
        """The dtype that the call asks for, which is not an attribute then."""
        entity = self.attributes.pop("dtype", None)
        if entity is None:
            return None
        base = normalize_attribute("dtype", static_value(entity, "dtype", self.span))
        checked = checked_attribute(self.function.operator, "dtype", base, self.span)
        assert checked is None or isinstance(checked, BaseType)
        return checked

    def cast_first_operand(self, base: BaseType) -> None:
        """Convert the first operand."""
        value = self.checker.materialize(self.out, self.operands[0], self.span)
        self.operands[0] = self.apply("cast", value, dtype=base)

    def tensor(self, position: int = 0) -> DynamicValue:
        """An operand as a tensor."""
        value = self.operands[position] = self.checker.materialize(self.out, self.operands[position], self.span)
        return value

    def rank(self, position: int = 0) -> int | None:
        """The rank of an operand; None if it is not known here."""
        known = tensor_type(self.tensor(position))
        return None if known is None else known.rank


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    function: NumpyFunction,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
    described: Sequence[str],
    own: Sequence[str] = (),
) -> AbstractValue:
    """Call a function of NumPy. `own` are attributes of the operator that a method takes besides. Raises TypeCheckError
    for arguments that NumPy does not take there, or that have no meaning here."""
    from relay.typecheck.elaboration.expressions.operator_calls import call_operator

    arguments = [expand(checker, out, a, span) if isinstance(a, DynamicValue) else a for a in arguments]
    operands, attributes = _bind_arguments(function, arguments, keywords, own, span)
    made = _Call(checker, out, function, operands, attributes, span, described)
    for name in [n for n in attributes if n not in function.operator.attributes and n not in _CHANGED]:
        _demand_harmless(function, name, attributes.pop(name), span)
    rule = _RULES.get(function.key)
    found = None if rule is None else rule(made)
    if found is not None:
        return found
    for name in [n for n in attributes if n not in function.operator.attributes]:
        _demand_harmless(function, name, attributes.pop(name), span)
    return call_operator(
        checker, out, function.operator, made.operands, list(made.attributes.items()), span, made.described
    )


def _bind_arguments(
    function: NumpyFunction,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    own: Sequence[str],
    span: Span | None,
) -> tuple[list[AbstractValue], dict[str, AbstractValue]]:
    """The arguments of a call by NumPy's signature as operands and, by the operator's names, attributes."""
    operator, name = function.operator, function.name
    parameters = inspect.signature(_SIGNATURES[function.key]).parameters
    kinds = {n: p.kind for n, p in parameters.items()}
    positional = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    spread = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if len(arguments) > len(positional) and not spread:
        raise TypeCheckError(
            f"wrong number of arguments to {name}: it takes {len(positional)} by position, found {len(arguments)}", span
        )
    given: dict[str, AbstractValue] = {} if spread else dict(zip(positional, arguments, strict=False))
    for key, entity in keywords:
        accepted = key in own or (key in kinds and kinds[key] is not inspect.Parameter.POSITIONAL_ONLY)
        if not accepted:
            ours = key in operator.attributes and key not in parameters
            names = ", ".join(n for n, k in kinds.items() if k is not inspect.Parameter.VAR_POSITIONAL)
            help = (
                f"relay.{operator.name}(x, {key}=..) does" if ours else argument_help(key, kinds) or f"it has {names}"
            )
            raise TypeCheckError(f"{name} takes no argument {key!r}", span, help=help)
        if key in given:
            raise TypeCheckError(f"{name} got two values for {key!r}", span)
        given[key] = entity
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given and n in positional]
    if missing:
        raise TypeCheckError(f"{name} needs a value for {missing[0]!r}", span)
    if spread:
        return list(arguments), given
    operands = [given.pop(n) for n in positional[: len(operator.operands)] if n in given]
    attributes = {_ATTRIBUTES.get(n, n): entity for n, entity in given.items()}
    for key, parameter in parameters.items():
        known = operator.attributes.get(_ATTRIBUTES.get(key, key), parameter.default)
        is_other = key not in given and parameter.default is not parameter.empty and key != "dtype"
        if is_other and known != parameter.default and key not in positional[: len(operator.operands)]:
            attributes[_ATTRIBUTES.get(key, key)] = _entity(parameter.default, span)
    if isinstance(given.get("dtype"), PythonObject) and given["dtype"].value is None:  # type: ignore[union-attr]
        attributes.pop("dtype")
    return operands, attributes


def _entity(value: object, span: Span | None) -> AbstractValue:
    return Number(value, span) if isinstance(value, int) and not isinstance(value, bool) else PythonObject(value)


def _demand_harmless(function: NumpyFunction, name: str, entity: AbstractValue, span: Span | None) -> None:
    """Raise TypeCheckError for an argument that has no meaning here, if it changes anything."""
    parameters = inspect.signature(_SIGNATURES[function.key]).parameters
    value: object = entity
    known = is_constant_bool(entity)
    if isinstance(entity, PythonObject | Number) or known is not None:
        value = known if known is not None and not isinstance(entity, PythonObject) else entity.value  # type: ignore[union-attr]
    harmless = (parameters[name].default, *_HARMLESS.get(name, ()))
    if name == "order" and function.key not in ("ravel", "reshape", "sort", "argsort"):
        harmless = (None, "C", "F", "A", "K")  # that of elements in memory
    if not any(value is h or (type(value) is type(h) and value == h) for h in harmless):
        raise TypeCheckError(f"{function.name} with {name!r} is not part of Relay", span, help=_INSTEAD.get(name))


# ---- what means something else than the operator's attributes say


def _narrow(base: object) -> BaseType | None:
    """The dtype that NumPy's sums of such elements have at least; None where that is their own."""
    base = prune(base)  # type: ignore[arg-type]
    if not isinstance(base, BaseType):
        return None
    if base == BOOL:
        return INT32
    if base.base_class is not BaseClass.INTEGER or np.dtype(base.name).itemsize >= 4:
        return None
    return UINT32 if base.name.startswith("u") else INT32


def _totals(call: _Call) -> None:
    """Sums and products are made in the dtype that is asked for, and those of short integers in one of 32 bits."""
    wanted = call.dtype()
    if wanted == BOOL:
        raise TypeCheckError(f"{call.function.name} has no booleans", call.span, help="np.any(x), np.all(x)")
    if wanted is None and call.function.key in ("sum", "prod", "cumsum", "cumprod", "trace", "linalg.trace"):
        type_ = prune(call.tensor().type)
        wanted = _narrow(type_.base) if isinstance(type_, TensorType) else None
    if wanted is not None:
        call.cast_first_operand(wanted)


def _in_one_row(call: _Call) -> None:
    """Without an axis the elements are taken in one row."""
    if call.static("axis") is None:
        if call.rank() != 1:
            call.operands[0] = call.apply("reshape", call.tensor(), shape=(-1,))
        call.attributes["axis"] = Number(0, call.span)


def _adapt_take(call: _Call) -> None:
    places = call.operands[1]
    if isinstance(places, Tuple) and places.items and all(isinstance(i, Number) for i in places.items):
        call.operands[1] = call.apply("stack", *places.items)
    _in_one_row(call)


def _running(call: _Call) -> None:
    _totals(call)
    _in_one_row(call)


def _adapt_concatenate(call: _Call) -> None:
    """Tensors in one row where the axis is None; the result in another dtype."""
    wanted = call.dtype()
    whole = call.operands[0]
    if isinstance(whole, Tuple):
        parts = [call.checker.materialize(call.out, item, call.span) for item in whole.items]
        if wanted is not None:
            parts = [_converted_part(call, part, wanted) for part in parts]
        if call.function.key == "concatenate" and "axis" in call.attributes and call.static("axis") is None:
            parts = [call.apply("reshape", part, shape=(-1,)) for part in parts]
            call.attributes["axis"] = Number(0, call.span)
        call.operands[0] = Tuple(tuple(parts), whole.form)
    elif wanted is not None:
        raise TypeCheckError(f"{call.function.name} with 'dtype' is not part of Relay", call.span, help="convert it")


def _converted_part(call: _Call, part: DynamicValue, wanted: BaseType) -> DynamicValue:
    type_ = prune(part.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    kinds = (BOOL.base_class, BaseClass.INTEGER, BaseClass.FLOAT)
    if isinstance(base, BaseType) and kinds.index(base.base_class) > kinds.index(wanted.base_class):
        help = f"convert the parts: x.astype(relay.{wanted.name.capitalize()})"
        raise TypeMismatch(f"{call.function.name} does not make {base} {wanted}", call.span, help=help)
    return call.apply("cast", part, dtype=wanted)


def _adapt_like(call: _Call) -> None:
    wanted = call.dtype()
    if wanted is not None:
        call.cast_first_operand(wanted)


def _moments(call: _Call) -> None:
    """`correction` is another name of `ddof`."""
    _totals(call)
    correction = call.attributes.pop("correction", None)
    if correction is not None:
        if "ddof" in call.attributes:
            raise TypeCheckError(f"{call.function.name} takes ddof or correction, found both", call.span)
        call.attributes["ddof"] = correction


def _planes(call: _Call) -> None:
    """The diagonals of the first two axes, or of those that are named; the operators take the last two."""
    if call.function.key == "trace":
        _totals(call)
    axes = []
    for name, default in (("axis1", 0), ("axis2", 1)):
        value = static_value(call.attributes.pop(name, Number(default)), name, call.span)
        axes.append(value)
    rank = call.rank()
    if rank is None:
        rank = len(numpy_matrices.ranked_type(call.tensor(), call.span).shape)
    if not all(isinstance(a, int) and not isinstance(a, bool) and -rank <= a < rank for a in axes):
        raise TypeCheckError(f"{call.function.name} of rank {rank} has no axes {axes[0]} and {axes[1]}", call.span)
    first, second = (a % rank for a in axes)  # type: ignore[operator]
    if first == second:
        raise TypeCheckError(f"{call.function.name} needs two axes, found {first} twice", call.span)
    if (first, second) != (rank - 2, rank - 1):
        call.operands[0] = call.apply("moveaxis", call.tensor(), source=(first, second), destination=(-2, -1))


def _norm(call: _Call) -> AbstractValue | None:
    keepdims = checked_attribute(call.function.operator, "keepdims", call.static("keepdims") or False, call.span)
    order, axis = call.static("ord"), call.static("axis")
    if isinstance(axis, str) and (order is None or isinstance(order, int | float)):  # one axis by its name
        call.attributes["ord"] = Number(2 if order is None else order, call.span)
        return None
    return numpy_matrices.norm(call.checker, call.out, call.tensor(), order, axis, keepdims is True, call.span)


def _dot(call: _Call) -> AbstractValue | None:
    """Elements of rank 0 are factors; of a tensor of rank 3 and more the last axis but one is summed over."""
    if any(isinstance(o, Number) for o in call.operands):
        return call.apply("multiply", *call.operands)
    left, right = call.rank(0), call.rank(1)
    if (left is None or right is None) and not call.checker.generic:
        left, right = (len(numpy_matrices.ranked_type(call.tensor(i), call.span).shape) for i in (0, 1))
    if left is None or right is None:
        return None
    if left == 0 or right == 0:
        return call.apply("multiply", *call.operands)
    if left > 1 and right > 2:
        return call.apply("tensordot", *call.operands, axes=((-1,), (-2,)))
    return None


def _vectors(call: _Call) -> None:
    for position in (0, 1):
        if (rank := call.rank(position)) not in (None, 1):
            raise TypeMismatch(f"{call.function.name} needs two vectors, found a tensor of rank {rank}", call.span)


def _grid(call: _Call) -> None:
    if any(isinstance(o, Number) for o in call.operands):
        help = "a number is an axis of one: np.array([0.0])"
        raise TypeMismatch("np.meshgrid takes arrays, found a number", call.span, help=help)


def _adapt_round(call: _Call) -> AbstractValue | None:
    """To this many decimals, as NumPy does: scaled, rounded half to even, and scaled back."""
    digits = call.static("decimals") if "decimals" in call.attributes else 0
    call.attributes.pop("decimals", None)
    if not isinstance(digits, int) or isinstance(digits, bool):
        raise TypeMismatch(f"decimals must be an integer, found {digits!r}", call.span)
    type_ = prune(call.tensor().type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType) and base.base_class is BaseClass.INTEGER and digits >= 0:
        return call.operands[0]
    if digits == 0:
        return None
    there, back = ("multiply", "divide") if digits > 0 else ("divide", "multiply")
    factor = Number(float(10 ** abs(digits)), call.span)
    return call.apply(back, call.apply("round", call.apply(there, call.operands[0], factor)), factor)


def _adapt_transpose(call: _Call) -> None:
    """The order of the axes, which of one axis may be a number."""
    entity = call.attributes.get("axes")
    if isinstance(entity, Number):
        call.attributes["axes"] = Tuple((entity,))


_RULES: dict[str, Callable[[_Call], AbstractValue | None]] = {
    **dict.fromkeys(("sum", "prod", "mean", "linalg.trace"), _totals),
    **dict.fromkeys(("std", "var"), _moments),
    **dict.fromkeys(("cumsum", "cumprod"), _running),
    "take": _adapt_take,
    "take_along_axis": _in_one_row,
    **dict.fromkeys(("concatenate", "stack"), _adapt_concatenate),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like"), _adapt_like),
    **dict.fromkeys(("trace", "diagonal"), _planes),
    "linalg.norm": _norm,
    "linalg.outer": _vectors,
    "dot": _dot,
    "meshgrid": _grid,
    "round": _adapt_round,
    "transpose": _adapt_transpose,
}


def signatures() -> Mapping[str, inspect.Signature]:
    """NumPy's signatures as this file has them, by key."""
    return {key: inspect.signature(function) for key, function in _SIGNATURES.items()}


__all__ = ["METHODS", "NumpyFunction", "call", "method", "numpy_function", "signatures"]
