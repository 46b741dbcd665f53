"""Operators under the names that NumPy has for them: `np.sum`, `np.linalg.trace`, and the methods of its arrays.

They are called as NumPy's signatures say, which differ from those of the operators in the order and names of arguments
and in defaults, and mean what they mean there. An argument that the operator has no meaning for may have a value that
changes nothing. With another value the call is that of the function in `relay/library` of the same name, if there is
one that has the argument; all others are errors that say what to write. Elementwise functions take operands only, in
NumPy as here, and need none of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from relay.errors import ShapeError, Span, TypeCheckError, TypeMismatch
from relay.ir.definition import Definition
from relay.ir.dims import ANY, product
from relay.ir.types import BOOL, INT32, INT64, UINT32, BaseClass, BaseType, TensorType, prune
from relay.operator import lookup
from relay.support import foreign_names
from relay.support.foreign_names import argument_help, own_name
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    Number,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.attributes import checked_attribute, normalize_attribute, static_value
from relay.typecheck.elaboration.library.numpy_signatures import (
    METHODS,
    SIGNATURES,
    NumpyFunction,
    numpy_function,
    required_count,
)
from relay.typecheck.elaboration.library.overloads import Call, find, implements
from relay.typecheck.elaboration.members.subscripts import ranked_type
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.guards import fits_int32
from relay.typecheck.unification import flat_shape

Keywords = Sequence[tuple[str, AbstractValue]]

_ATTRIBUTES = {"N": "n", "M": "m", "fill_value": "value", "pad_width": "widths", "constant_values": "value"}
"""The operators' names of NumPy's arguments."""


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

    def static_value(self, name: str) -> object:
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
        entity = operators.as_array(self.checker, self.out, self.operands[position], self.span, tuples=True)
        value = self.operands[position] = self.checker.materialize(self.out, entity, self.span)
        return value

    def rank(self, position: int = 0) -> int | None:
        """The rank of an operand; None if it is not known here."""
        known = tensor_type(self.tensor(position))
        return None if known is None else known.rank


def call(site: Call, function: NumpyFunction, own: Sequence[str] = ()) -> AbstractValue:
    """Call a function of NumPy. `own` are attributes of the operator that a method takes besides. Raises TypeCheckError
    for arguments that NumPy does not take there, or that have no meaning here."""
    checker, out, span = site.site
    arguments = [expand(checker, out, a, span) if isinstance(a, DynamicValue) else a for a in site.arguments]
    operands, attributes = _bind_arguments(function, arguments, site.keywords, own, span, site.bound > 0)
    if not _takes_sequence(function):
        operands = [operators.as_array(checker, out, operand, span, tuples=True) for operand in operands]
    made = _Call(checker, out, function, operands, attributes, span, site.described)
    written = _written_meaning(function)
    if written is not None and _needs_more(made, written):
        return checker.engine.call_function(checker, out, GlobalFunction(written), site.arguments, site.keywords, span)
    for name in [n for n in attributes if n not in function.operator.attributes and n not in _CHANGED]:
        _demand_harmless(function, name, attributes.pop(name), span)
    rule = _RULES.get(function.key)
    found = None if rule is None else rule(made)
    if found is not None:
        return found
    for name in [n for n in attributes if n not in function.operator.attributes]:
        _demand_harmless(function, name, attributes.pop(name), span)
    return checker.engine.call_operator(
        checker, out, function.operator, made.operands, list(made.attributes.items()), span, made.described
    )


def _written_meaning(function: NumpyFunction) -> Definition | None:
    """The function of the language that is the same for more arguments; None if there is none."""
    module = np.linalg if function.key.startswith("linalg.") else np
    overloads = find(getattr(module, function.key.removeprefix("linalg.")))
    return next((o.definition for o in overloads if o.is_written and o.owner is None), None)


def _needs_more(call: _Call, written: Definition) -> bool:
    """True if a call has arguments that the operator has no meaning for, and the function of the language has."""
    if "out" in call.attributes:
        _demand_harmless(call.function, "out", call.attributes["out"], call.span)
    if "keepdims" in call.attributes:
        checked_attribute(call.function.operator, "keepdims", call.static_value("keepdims"), call.span)
    decides = _BEYOND_OPERATORS.get(call.function.key)
    if decides is not None and decides(call):
        return True
    names = {p.name for p in written.function.parameters}
    more = [n for n in call.attributes if n in names and n not in call.function.operator.attributes]
    return any(not _is_harmless(call.function, n, call.attributes[n]) for n in more if n not in _CHANGED)


def _takes_sequence(function: NumpyFunction) -> bool:
    """True if a list is not an array for a function, but several, or a shape."""
    first = next(iter(inspect.signature(SIGNATURES[function.key]).parameters.values()))
    return first.name in ("arrays", "shape") or first.kind is first.VAR_POSITIONAL


def _bind_arguments(
    function: NumpyFunction,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    own: Sequence[str],
    span: Span | None,
    is_method: bool,
) -> tuple[list[AbstractValue], dict[str, AbstractValue]]:
    """The arguments of a call by NumPy's signature as operands and, by the operator's names, attributes."""
    operator, name = function.operator, function.name
    parameters = inspect.signature(SIGNATURES[function.key]).parameters
    kinds = {n: p.kind for n, p in parameters.items()}
    positional = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    spread = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if len(arguments) > len(positional) and not spread:
        raise TypeCheckError(
            f"wrong number of arguments to {name}: it takes {len(positional)} by position, found {len(arguments)}", span
        )
    given: dict[str, AbstractValue] = {} if spread else dict(zip(positional, arguments, strict=False))
    for written, entity in keywords:
        key = own_name(written, kinds) if is_method else written
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
    return PythonNumber(value, span) if isinstance(value, int) and not isinstance(value, bool) else PythonObject(value)


def _demand_harmless(function: NumpyFunction, name: str, entity: AbstractValue, span: Span | None) -> None:
    """Raise TypeCheckError for an argument that has no meaning here, if it changes anything."""
    if not _is_harmless(function, name, entity):
        help = foreign_names.ARGUMENT_ADVICE.get(name)
        raise TypeCheckError(f"{function.name} with {name!r} is not part of Relay", span, help=help)


def _is_harmless(function: NumpyFunction, name: str, entity: AbstractValue) -> bool:
    """True if the value of an argument changes nothing."""
    parameters = inspect.signature(SIGNATURES[function.key]).parameters
    value: object = entity
    known = is_constant_bool(entity)
    if isinstance(entity, PythonObject | Number) or known is not None:
        value = known if known is not None and not isinstance(entity, PythonObject) else entity.value  # type: ignore[union-attr]
    harmless = (parameters[name].default, *_HARMLESS.get(name, ()))
    if name == "order" and function.key not in ("ravel", "reshape", "sort", "argsort"):
        harmless = (None, "C", "F", "A", "K")  # that of elements in memory
    return any(value is h or (type(value) is type(h) and value == h) for h in harmless)


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
    """Sums and products are computed in the requested dtype, and those of short integers in one of 32 bits."""
    wanted = call.dtype()
    if wanted is not None and not wanted.is_float and call.function.key in ("mean", "std", "var"):
        raise TypeMismatch(
            f"the dtype of np.{call.function.key} must be one of floats, found {wanted}",
            call.span,
            help="leave it out, and convert the result",
        )
    if wanted == BOOL:
        raise TypeCheckError(f"{call.function.name} has no booleans", call.span, help="np.any(x), np.all(x)")
    if wanted is None and call.function.key in ("sum", "prod", "cumsum", "cumprod", "trace", "linalg.trace"):
        type_ = prune(call.tensor().type)
        wanted = _narrow(type_.base) if isinstance(type_, TensorType) else None
        if isinstance(type_, TensorType) and prune(type_.base) == BOOL:
            if call.function.key == "sum":
                return  # it counts, in as many bits as the number of elements needs
            shape = flat_shape(type_.shape)
            if ANY not in shape and not fits_int32(call.checker.hints, product(shape)):
                wanted = INT64
    if wanted is not None:
        call.cast_first_operand(wanted)


def _truths(call: _Call) -> None:
    """Numbers that are not 0 are true."""
    type_ = prune(call.tensor().type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType) and base != BOOL:
        call.cast_first_operand(BOOL)


def _in_one_row(call: _Call) -> None:
    """Without an axis the elements are taken in one row."""
    if call.static_value("axis") is None:
        if call.rank() != 1:
            call.operands[0] = call.apply("reshape", call.tensor(), shape=(-1,))
        call.attributes["axis"] = PythonNumber(0, call.span)


def _adapt_take(call: _Call) -> None:
    places = call.operands[1]
    if isinstance(places, Tuple) and places.items and all(isinstance(i, Number) for i in places.items):
        call.operands[1] = call.apply("stack", *places.items)
    _in_one_row(call)


def _running_reduction(call: _Call) -> None:
    _totals(call)
    _in_one_row(call)


def _adapt_concatenate(call: _Call) -> None:
    """Tensors in one row where the axis is None; the result in another dtype."""
    wanted = call.dtype()
    whole = call.operands[0]
    if isinstance(whole, Tuple):
        arrays = [operators.as_array(call.checker, call.out, item, call.span, tuples=True) for item in whole.items]
        parts = [call.checker.materialize(call.out, item, call.span) for item in arrays]
        if wanted is not None:
            parts = [_converted_part(call, part, wanted) for part in parts]
        if call.function.key == "concatenate" and "axis" in call.attributes and call.static_value("axis") is None:
            parts = [call.apply("reshape", part, shape=(-1,)) for part in parts]
            call.attributes["axis"] = PythonNumber(0, call.span)
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


def _full_like(call: _Call) -> AbstractValue | None:
    """A number that is computed at run time fills the array, in its dtype."""
    _adapt_like(call)
    value = data_dependent.number_at_run_time(call.checker, call.out, call.attributes["value"], call.span)
    type_ = tensor_type(call.tensor())
    if not isinstance(value, DynamicValue) or is_constant_bool(value) is not None or type_ is None:
        return None
    filling = call.apply("cast", value, dtype=type_.base)
    return call.apply("broadcast_to", filling, shape=flat_shape(type_.shape))


def _choose(call: _Call) -> AbstractValue | None:
    """Without values to choose from, the places where the condition holds."""
    if len(call.operands) == 2:
        raise TypeCheckError("np.where needs a value for 'y'", call.span)
    if len(call.operands) == 3:
        return None
    meaning = find(np.nonzero)[0].definition
    assert meaning is not None
    return call.checker.engine.call_function(
        call.checker, call.out, GlobalFunction(meaning), call.operands, (), call.span
    )


def _moments(call: _Call) -> None:
    """`correction` is another name of `ddof`."""
    _totals(call)
    correction = call.attributes.pop("correction", None)
    if correction is not None:
        if "ddof" in call.attributes:
            raise TypeCheckError(f"{call.function.name} takes ddof or correction, found both", call.span)
        call.attributes["ddof"] = correction


def _planes(call: _Call) -> None:
    """The diagonals of the first two axes, or of the named ones; the operators take the last two."""
    if call.function.key == "trace":
        _totals(call)
    axes = []
    for name, default in (("axis1", 0), ("axis2", 1)):
        value = static_value(call.attributes.pop(name, PythonNumber(default)), name, call.span)
        axes.append(value)
    rank = call.rank()
    if rank is None:
        rank = len(ranked_type(call.tensor(), call.span).shape)
    if not all(isinstance(a, int) and not isinstance(a, bool) and -rank <= a < rank for a in axes):
        raise TypeCheckError(f"{call.function.name} of rank {rank} has no axes {axes[0]} and {axes[1]}", call.span)
    first, second = (a % rank for a in axes)  # type: ignore[operator]
    if first == second:
        raise TypeCheckError(f"{call.function.name} needs two axes, found {first} twice", call.span)
    if (first, second) != (rank - 2, rank - 1):
        call.operands[0] = call.apply("moveaxis", call.tensor(), source=(first, second), destination=(-2, -1))


def _norm_along(
    checker: Checker,
    out: TypedBlockBuilder,
    x: DynamicValue,
    order: object,
    axis: object,
    keepdims: bool,
    span: Span | None,
) -> DynamicValue:
    """`np.linalg.norm(x, ord, axis, keepdims)`: of the elements as a vector without an order and axis, along one axis
    that of vectors, and along two that of matrices. Raises ShapeError, TypeCheckError."""
    rank = len(tuple(ranked_type(x, span).shape))

    def call(name: str, operand: DynamicValue, **attributes: object) -> DynamicValue:
        return operators.apply(checker, out, lookup(name), [operand], attributes, span, [])

    if axis is None and order is None:
        return call("norm", x, ord=2, axis=None, keepdims=keepdims)
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) not in (1, 2):
        what = f"along {len(axes)} axes" if axis is not None else f"of rank {rank}"
        raise ShapeError(f"np.linalg.norm {what}", span, help="it is about one axis, for vectors, or two, for matrices")
    if not all(isinstance(a, int) and not isinstance(a, bool) and -rank <= a < rank for a in axes):
        raise ShapeError(f"np.linalg.norm of rank {rank} has no axis {axis}", span)
    places = tuple(a % rank for a in axes)
    if len(set(places)) < len(places):
        raise ShapeError(f"np.linalg.norm needs two axes, found {axis}", span)
    is_number = isinstance(order, int | float) and not isinstance(order, bool)
    if len(places) == 1:
        if order is not None and not is_number:
            raise TypeCheckError(f"the order of a vector's norm is a number, found {order!r}", span)
        return call("norm", x, ord=2 if order is None else order, axis=places[0], keepdims=keepdims)
    if order is None or order == "fro":
        return call("norm", x, ord=2, axis=places, keepdims=keepdims)
    if order not in (1, -1, float("inf"), float("-inf")):
        raise TypeCheckError(
            f"the norm of order {order!r} of matrices is not part of Relay",
            span,
            help="np.linalg.norm(A) is the Frobenius norm, orders 1 and inf are sums along columns and rows,"
            " 2 and 'nuc' are of singular values; the norm of all elements as a vector: np.linalg.norm(A.ravel(), ord)",
        )
    summed, compared = places if order in (1, -1) else (places[1], places[0])
    sums = call("sum", call("abs", x), axis=summed, keepdims=True)
    most = call("max" if order in (1, float("inf")) else "min", sums, axis=compared, keepdims=True)
    return most if keepdims else call("squeeze", most, axis=places)


def _norm(call: _Call) -> AbstractValue | None:
    keepdims = checked_attribute(call.function.operator, "keepdims", call.static_value("keepdims") or False, call.span)
    order, axis = call.static_value("ord"), call.static_value("axis")
    if isinstance(axis, str) and (order is None or isinstance(order, int | float)):  # one axis by its name
        call.attributes["ord"] = PythonNumber(2 if order is None else order, call.span)
        return None
    return _norm_along(call.checker, call.out, call.tensor(), order, axis, keepdims is True, call.span)


def _dot(call: _Call) -> AbstractValue | None:
    """Elements of rank 0 are factors; of a tensor of rank 3 and more the last axis but one is summed over."""
    if any(isinstance(o, Number) for o in call.operands):
        return call.apply("multiply", *call.operands)
    left, right = call.rank(0), call.rank(1)
    if (left is None or right is None) and not call.checker.generic:
        left, right = (len(ranked_type(call.tensor(i), call.span).shape) for i in (0, 1))
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
    digits = call.static_value("decimals") if "decimals" in call.attributes else 0
    call.attributes.pop("decimals", None)
    if not isinstance(digits, int) or isinstance(digits, bool):
        raise TypeMismatch(f"decimals must be an integer, found {digits!r}", call.span)
    type_ = prune(call.tensor().type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if isinstance(base, BaseType) and base.base_class is BaseClass.INTEGER and digits >= 0:
        return call.operands[0]
    if isinstance(base, BaseType) and not base.is_float and digits != 0:
        raise TypeMismatch(f"{base} is not rounded to tens", call.span, help="convert it: x.astype(relay.Float32)")
    if digits == 0:
        return None
    there, back = ("multiply", "divide") if digits > 0 else ("divide", "multiply")
    factor = PythonNumber(float(10 ** abs(digits)), call.span)
    return call.apply(back, call.apply("round", call.apply(there, call.operands[0], factor)), factor)


def _adapt_transpose(call: _Call) -> None:
    """The order of the axes, which of one axis may be a number."""
    entity = call.attributes.get("axes")
    if isinstance(entity, Number):
        call.attributes["axes"] = Tuple((entity,))


_RULES: dict[str, Callable[[_Call], AbstractValue | None]] = {
    **dict.fromkeys(("sum", "prod", "mean", "linalg.trace"), _totals),
    **dict.fromkeys(("std", "var"), _moments),
    **dict.fromkeys(("all", "any"), _truths),
    **dict.fromkeys(("cumsum", "cumprod"), _running_reduction),
    "take": _adapt_take,
    "take_along_axis": _in_one_row,
    **dict.fromkeys(("concatenate", "stack"), _adapt_concatenate),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), _adapt_like),
    "full_like": _full_like,
    "where": _choose,
    **dict.fromkeys(("trace", "diagonal"), _planes),
    "linalg.norm": _norm,
    "linalg.outer": _vectors,
    "dot": _dot,
    "meshgrid": _grid,
    "round": _adapt_round,
    "transpose": _adapt_transpose,
}


def _is_beyond_linspace(call: _Call) -> bool:
    """Between ends that are arrays, or only known at run time, or of a dtype that is none of floats."""
    if not all(isinstance(call.attributes[name], Number) for name in ("start", "stop")):
        return True
    dtype = call.attributes.get("dtype")
    if dtype is None:
        return False
    base = normalize_attribute("dtype", static_value(dtype, "dtype", call.span))
    return isinstance(base, BaseType) and not base.is_float


def _is_beyond_pad(call: _Call) -> bool:
    """With another mode than the operator's, widths that are not pairs, or several constants."""
    mode, widths = call.static_value("mode"), call.attributes.get("widths")
    if mode not in (None, "constant", "edge", "reflect"):
        return True
    value = call.attributes.get("value")
    pairs = widths.items if isinstance(widths, Tuple) else ()
    is_short = any(isinstance(pair, Tuple) and len(pair.items) == 1 for pair in pairs)
    is_spread = len(pairs) == 1 and isinstance(pairs[0], Tuple)
    return is_short or is_spread or isinstance(value, Tuple | DynamicValue)


def _is_flat(call: _Call) -> bool:
    """Along no axis: of all elements."""
    return "axis" in call.attributes and call.static_value("axis") is None


def _is_spectral(call: _Call) -> bool:
    """The norm of matrices by their singular values."""
    axis = call.static_value("axis")
    axes = call.rank() if axis is None else len(axis) if isinstance(axis, tuple) else 1
    return axes == 2 and call.static_value("ord") in (2, -2, "nuc")


_BEYOND_OPERATORS: dict[str, Callable[[_Call], bool]] = {
    "linspace": _is_beyond_linspace,
    "pad": _is_beyond_pad,
    **dict.fromkeys(("sort", "argsort"), _is_flat),
    "linalg.norm": _is_spectral,
}
"""The conditions under which a call is that of the function of the language, for arguments that the operator has."""


def _implement(key: str) -> None:
    """Enter a function of NumPy's, and the method of arrays that is the same."""

    def rule(site: Call, *arguments: AbstractValue, **keywords: AbstractValue) -> AbstractValue:
        return call(site, numpy_function(key))

    module, name = (np.linalg, key.removeprefix("linalg.")) if key.startswith("linalg.") else (np, key)
    for other in (name, *(alias for alias, meant in _ALIASES.items() if meant == key)):
        function = getattr(module, other)
        implements(function, name=f"np.{key}" if other == name else f"np.{other}", arity=required_count(key))(rule)


def _implement_method(name: str) -> None:
    key = "ravel" if name == "flatten" else name

    def rule(site: Call, *arguments: AbstractValue, **keywords: AbstractValue) -> AbstractValue:
        function = numpy_function(key)
        return call(site, function, (*function.operator.attributes,))

    implements(getattr(np.ndarray, name), name=f"np.ndarray.{name}")(rule)


_ALIASES = {"amax": "max", "amin": "min", "around": "round"}
"""Functions of NumPy that have two names."""

for _key in SIGNATURES:
    _implement(_key)
for _name in METHODS:
    _implement_method(_name)
