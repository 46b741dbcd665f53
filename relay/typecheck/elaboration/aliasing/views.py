"""Views: functions of NumPy and methods of arrays whose results are, or hold, what they were given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from relay.errors import Span
from relay.ir.expr import Atom, Constant, Static, Var
from relay.ir.types import BaseType, Type
from relay.typecheck.elaboration.abstract_values import DynamicValue, PythonNumber, PythonObject, is_constant_bool
from relay.typecheck.elaboration.aliasing import effects
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import NONE, Object, Objects
from relay.typecheck.elaboration.aliasing.walk import Walker
from relay.typecheck.elaboration.values.tensors import tensor_type

_UNKNOWN = object()
"""The value of an argument that is computed."""

_OTHERS = (Kind.LIST, Kind.FIXED, Kind.RECORD)
"""The kinds of values of which NumPy makes a new array."""


@attrs.frozen(eq=False)
class _Call:
    """A call of a function, its arguments as NumPy numbers them: an array is the first one of its methods."""

    walker: Walker
    target: Var
    arguments: Sequence[Atom]
    keywords: Mapping[str, Atom]

    def atom(self, position: int, name: str) -> Atom | None:
        """An argument; None if it is not given."""
        return self.arguments[position] if position < len(self.arguments) else self.keywords.get(name)

    def value(self, position: int, name: str, default: object = None) -> object:
        """The value of an argument, as far as it is known."""
        found = self.atom(position, name)
        if found is None:
            return default
        if isinstance(found, Static):
            return found.value
        if isinstance(found, Constant):
            return found.value.item() if found.value.ndim == 0 else _UNKNOWN
        meaning = self.walker.meanings.value(found) if isinstance(found, Var) else None
        if isinstance(meaning, PythonNumber | PythonObject):
            return meaning.value
        known = None if meaning is None else is_constant_bool(meaning)
        return _UNKNOWN if known is None else known

    def may_be(self, position: int, name: str, *wanted: object, default: object = None) -> bool:
        """True unless an argument is known to have none of some values."""
        found = self.value(position, name, default)
        return found is _UNKNOWN or any(found is w or found == w for w in wanted)

    def type(self, atom: Atom) -> Type | None:
        """The type of an operand; None if it is not known, or no tensor of known rank."""
        meaning = self.walker.meanings.value(atom) if isinstance(atom, Var) else None
        return tensor_type(meaning) if isinstance(meaning, DynamicValue) else None


def _first(call: _Call) -> Sequence[Atom]:
    return call.arguments[:1] or list(call.keywords.values())[:1]


def _all(call: _Call) -> Sequence[Atom]:
    return [*call.arguments, *call.keywords.values()]


def _unless_copied(call: _Call) -> Sequence[Atom]:
    return () if call.value(3, "copy") is True else _first(call)


def _array(call: _Call) -> Sequence[Atom]:
    return _first(call) if "copy" in call.keywords and call.value(9, "copy") is not True else ()


def _astype(call: _Call) -> Sequence[Atom]:
    return _first(call) if call.may_be(5, "copy", False, default=True) else ()


def _mesh(call: _Call) -> Sequence[Atom]:
    return call.arguments if call.may_be(99, "copy", False, default=True) else ()


def _matrix_diagonal(call: _Call) -> Sequence[Atom]:
    type_ = call.type(call.arguments[0]) if call.arguments else None
    return () if getattr(type_, "rank", 2) == 1 else _first(call)


def _with(position: int, name: str, value: object, default: object) -> Callable[[_Call], Sequence[Atom]]:
    """The first argument, where another one has this value."""
    return lambda call: _first(call) if call.may_be(position, name, value, default=default) else ()


def _edges(position: int) -> Callable[[_Call], Sequence[Atom]]:
    def edges(call: _Call) -> Sequence[Atom]:
        found = call.atom(position, "bins")
        return () if found is None else (found,)

    return edges


def _einsum(call: _Call) -> Sequence[Atom]:
    """The operand of `np.einsum("ij->ji", x)`, which sums nothing."""
    text = call.value(0, "subscripts")
    if len(call.arguments) != 2:
        return ()
    if not isinstance(text, str):
        return call.arguments[1:]
    read, arrow, written = text.replace(" ", "").partition("->")
    once = {letter for letter in read if read.count(letter) == 1}
    return call.arguments[1:] if set(read) == (set(written) if arrow else once) else ()


_FIRST_ARGUMENT = (
    *("reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes", "moveaxis", "rollaxis"),
    *("squeeze", "expand_dims", "diagonal", "broadcast_to", "real", "real_if_close", "trim_zeros"),
    *("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack"),
    *("flip", "fliplr", "flipud", "rot90", "sliding_window_view", "as_strided"),
    *("asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "require", "from_dlpack"),
)

_FUNCTIONS: dict[str, Callable[[_Call], Sequence[Atom]]] = {
    **dict.fromkeys(_FIRST_ARGUMENT, _first),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "ix_"), _all),
    "asarray": _unless_copied,
    "array": _array,
    "astype": _astype,
    "meshgrid": _mesh,
    "nan_to_num": _with(1, "copy", False, True),
    "diag": _matrix_diagonal,
    "diff": _with(1, "n", 0, 1),
    "polyder": _with(1, "m", 0, 1),
    "polyint": _with(1, "m", 0, 1),
    "matrix_power": _with(1, "n", 1, None),
    "histogram": _edges(1),
    "histogram_bin_edges": _edges(1),
    "histogram2d": _edges(2),
    "einsum": _einsum,
}
"""Functions of NumPy whose result may be a view of arguments, or holds views of these, with these arguments."""

_METHODS: dict[str, Callable[[_Call], Sequence[Atom]]] = {
    **{
        name: _FUNCTIONS[name]
        for name in ("reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "astype", "expand_dims")
    },
    **dict.fromkeys(("view", "conj", "conjugate", "permute", "unsqueeze", "detach", "contiguous"), _first),
    **dict.fromkeys(("split", "moveaxis", "broadcast_to", "flip", "fliplr", "flipud", "expand"), _first),
}
"""Methods of arrays, with those of PyTorch's that copy nothing."""

ATTRIBUTES = ("T", "mT", "real", "flat")
"""Attributes of arrays that are views."""

_CHANGING: dict[str, Callable[[_Call], bool]] = {
    "nan_to_num": lambda call: call.may_be(1, "copy", False, default=True),
    "median": lambda call: call.may_be(3, "overwrite_input", True, default=False),
    "nanmedian": lambda call: call.may_be(3, "overwrite_input", True, default=False),
    **dict.fromkeys(
        ("quantile", "percentile", "nanquantile", "nanpercentile"),
        lambda call: call.may_be(4, "overwrite_input", True, default=False),
    ),
}
"""Functions of NumPy that change their first argument, and when."""


def is_view(name: str) -> bool:
    """True for a function whose result may be a view."""
    return name in _FUNCTIONS or name in _CHANGING


def bind_result(
    walker: Walker,
    target: Var,
    name: str,
    arguments: Sequence[Atom],
    keywords: Sequence[tuple[str, Atom]],
    span: Span | None,
    *,
    is_method: bool = False,
) -> None:
    """Let the target be the result of a function of NumPy, or of a method of an array, which is the first argument."""
    call = _Call(walker, target, arguments, dict(keywords))
    rule = (_METHODS if is_method else _FUNCTIONS).get(name)
    changes = _CHANGING.get(name)
    first = _first(call)
    if changes is not None and first and not is_method and changes(call):
        effects.change(walker, first[0], span)
    viewed = [o for atom in (() if rule is None else rule(call)) for o in _views(call, atom)]
    kind = walker.kind(target)
    if not viewed or kind is Kind.PLAIN:
        walker.bind_new(target)
    elif kind in _OTHERS:  # a list or a tuple of views
        made = Object()
        made.hold(walker.any_step(), viewed)
        walker.bind(target, frozenset({made}))
    else:
        walker.bind(target, frozenset(viewed))


def _views(call: _Call, atom: Atom) -> Objects:
    """The views of an argument; of a list or a tuple NumPy makes a new array, but some functions take several there."""
    walker = call.walker
    objects = walker.objects(atom)
    if not any(o.is_array for o in objects) and (isinstance(atom, Var) and walker.kind(atom) in _OTHERS):
        held = walker.contents(objects, walker.any_step())
        return frozenset(o for o in held if o.is_array) if walker.kind(call.target) in _OTHERS else NONE
    theirs, ours = _kind_of_numbers(call, atom), _kind_of_numbers(call, call.target)
    if theirs != ours and None not in (theirs, ours):  # it was converted
        return NONE
    step = walker.any_step()
    found = walker.contents(objects, step)
    for one in found:
        one.is_array = True
    return found


def _kind_of_numbers(call: _Call, atom: Atom) -> str | None:
    """The kind of an array's numbers, which a view has, too; None where it is not known."""
    type_ = call.type(atom)
    base = getattr(type_, "base", None)
    return base.dtype.kind if isinstance(base, BaseType) else None
