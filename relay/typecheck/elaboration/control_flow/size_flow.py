"""Sizes in a round of a loop, followed back to sizes at its beginning, from the text before inference.

y[a:], y[:-b]        n - a, n - b                  concatenate(y, z)    n + m
y + z, sin(y)        n, as elementwise operators   y[y > 0]             data-dependent
xs.append(v)         n + 1                         xs[i] = v            n; dynamic if only the run knows i
y if c else z        varies if the sizes differ, and only the run knows c
"""

from __future__ import annotations

import types
from collections.abc import Sequence

import attrs

from relay.ir.expr import Atom, Expr, Global, If, Loop, MakeTuple, OpCall, Project, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.sizes.facts import mentions_made
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, IndexUpdate, PatternMatch, Slice, Unpack
from relay.ir.types import ANY, TensorType
from relay.operator import Operator, Pattern, Relation, lookup, resolve_name
from relay.typecheck.elaboration.control_flow.round_start import LENGTH, Root, RoundStart
from relay.typecheck.elaboration.control_flow.value_flow import Dynamic, Path, ValueFlow, conditions_of, yielded
from relay.typecheck.unification import is_known


@attrs.frozen
class Size:
    """`scale * n + offset`, or at least that, where n is the size of a component at the beginning of the round."""

    root: Root | None
    scale: int = 1
    offset: int = 0
    at_least: bool = False

    @property
    def differs(self) -> bool:
        """True if it is certainly not n."""
        if self.at_least:
            return self.scale >= 1 and self.offset >= 2 - min(self.scale, 2)
        return (self.scale, self.offset) != (1, 0)

    def plus(self, offset: int, at_least: bool = False) -> Size:
        """The size of something that is this much longer, or perhaps more."""
        if self in (VARIES, DATA_DEPENDENT):
            return self
        return Size(self.root, self.scale, self.offset + offset, self.at_least or at_least)


VARIES = Size(None, -1)
"""Not the size at the beginning, in some rounds."""

DATA_DEPENDENT = Size(None, -2)
"""A size that data decide."""


class SizeFlow:
    """The sizes of values in a round."""

    def __init__(self, start: RoundStart) -> None:
        self._start = start
        self._dynamic = Dynamic(start.loop, start.is_dynamic, self._is_of_any_size, self._has_many_rounds)
        self._seen: dict[tuple[ValueFlow, Var, Path, int], Size | None] = {}
        self._ends = frozenset(start.loop.parameters)  # where sizes begin

    def size(self, flow: ValueFlow, atom: Atom, path: Path, axis: int) -> Size | None:
        """The size of a component of a value along an axis, if the text tells it."""
        if not isinstance(atom, Var):
            return None
        while atom not in self._ends and not flow.defines(atom) and flow.caller is not None:
            flow = flow.caller
        if atom in self._ends or not flow.defines(atom):
            return Size((atom, path))
        key = flow, atom, path, axis
        if key not in self._seen:
            self._seen[key] = None  # unknown, where it is asked for in a circle
            self._seen[key] = self._find_size(flow, atom, path, axis)
        return self._seen[key]

    def _find_size(self, flow: ValueFlow, atom: Var, path: Path, axis: int) -> Size | None:
        if atom in flow.arguments:
            return None if flow.caller is None else self.size(flow.caller, flow.arguments[atom], path, axis)
        if atom in flow.carried:
            return self._carried(flow, *flow.carried[atom], path, axis)
        return self._of_expression(flow, *flow.origins[atom], path, axis) if atom in flow.origins else None

    def _of_expression(self, flow: ValueFlow, value: Expr, target: int, path: Path, axis: int) -> Size | None:
        match value:
            case Var() | Annotated(Var()):
                return self.size(flow, value.value if isinstance(value, Annotated) else value, path, axis)
            case MakeTuple(items):
                return self._of_items(flow, items, path, axis)
            case Unpack(whole):
                return self.size(flow, whole, (target, *path), axis)
            case Project(whole, index):
                return self.size(flow, whole, (index, *path), axis)
            case Attribute(whole, name):
                return self.size(flow, whole, (name, *path), axis)
            case Index(whole, items):
                return self._of_index(flow, whole, items, path, axis)
            case IndexUpdate(whole, (key,), new):
                return self._of_update(flow, whole, key, new, path, axis)
            case IndexUpdate(whole) if axis != LENGTH:
                return self.size(flow, whole, path, axis)
            case If():
                found = [self.size(flow, values[target], path, axis) for values in yielded(value)]
                return _joined(found, any(self._dynamic.is_dynamic(flow, c) for c in conditions_of(value)))
            case PatternMatch():
                return _joined([self.size(flow, values[target], path, axis) for values in yielded(value)], False)
            case ForEach(parameters=parameters) if target < len(parameters):
                return self._carried(flow, value, target, path, axis)
            case Loop():
                return _joined([self.size(flow, a, path, axis) for a in flow.results(value.label, target)], False)
            case OpCall(operator, arguments) if not path and axis != LENGTH:
                return self._of_operator(flow, lookup(operator), arguments, None, axis)
            case Apply():
                return self._of_call(flow, value, path, axis)
            case _:
                return None

    def _carried(self, flow: ValueFlow, loop: Loop | ForEach, position: int, path: Path, axis: int) -> Size | None:
        """The size of a parameter of an inner loop, in its rounds and after them."""
        parameter = loop.parameters[position]
        own, around = Size((parameter, path)), (self._seen, self._ends)
        self._seen, self._ends = {}, self._ends | {parameter}
        sizes = {self.size(flow, end, path, axis) for end in flow.round_ends(loop, position)}
        self._seen, self._ends = around
        if sizes <= {own}:
            return self.size(flow, loop.initial[position], path, axis)
        if DATA_DEPENDENT in sizes or VARIES in sizes:
            return DATA_DEPENDENT if DATA_DEPENDENT in sizes else VARIES
        if isinstance(loop, ForEach) and axis == LENGTH and not self._has_many_rounds(flow, loop):
            return None  # it may be copied for each round
        return VARIES if any(s is not None and s.root == own.root and s.differs for s in sizes) else None

    def _has_many_rounds(self, flow: ValueFlow, loop: ForEach) -> bool:
        """True if only the run knows how many rounds a loop has."""
        match flow.origin(loop.iterable):
            case Apply(Global("range"), arguments):
                return any(self._dynamic.is_dynamic(flow, a) for a in arguments)
            case _:
                size = self.size(flow, loop.iterable, (), LENGTH)
                if size is None or size.root is None:
                    return size is VARIES
                return self._start.dim(size.root, LENGTH) is ANY

    def _of_items(self, flow: ValueFlow, items: Sequence[Atom], path: Path, axis: int) -> Size | None:
        if not path:
            return Size(None, 0, len(items)) if axis == LENGTH else None
        step = path[0]
        return self.size(flow, items[step], path[1:], axis) if isinstance(step, int) and step < len(items) else None

    def _of_index(
        self, flow: ValueFlow, whole: Atom, items: Sequence[Atom | Slice], path: Path, axis: int
    ) -> Size | None:
        if len(items) == 1 and isinstance(items[0], Static) and isinstance(items[0].value, int | str):
            return self.size(flow, whole, (items[0].value, *path), axis)
        place = max(axis, 0)
        if path or any(not isinstance(item, Slice) for item in items[: place + 1]):
            return DATA_DEPENDENT if not path and axis == 0 and self._is_mask(flow, whole, items) else None
        size = self.size(flow, whole, path, axis)
        return size if place >= len(items) or size is None else _sliced(size, items[place])

    def _is_mask(self, flow: ValueFlow, whole: Atom, items: Sequence[Atom | Slice]) -> bool:
        """True if a vector is indexed by a comparison of its own elements."""
        value = flow.origin(items[0]) if len(items) == 1 and isinstance(items[0], Var) else None
        if not isinstance(value, OpCall):
            return False
        relation, size = lookup(value.operator).relation, self.size(flow, whole, (), 0)
        if not isinstance(relation, Relation) or relation.base.text.split()[-1] != "bool" or size is None:
            return False
        known = self._start.component(size.root) if size.root is not None else None
        is_vector = isinstance(known, TensorType) and is_known(known.shape) and len(known.shape) == 1
        return is_vector and any(self.size(flow, a, (), 0) == size for a in value.arguments)

    def _of_update(
        self, flow: ValueFlow, whole: Atom, key: Atom | Slice, new: Atom, path: Path, axis: int
    ) -> Size | None:
        if isinstance(key, Static) and isinstance(key.value, int | str) and path and key.value == path[0]:
            return self.size(flow, new, path[1:], axis)
        if not isinstance(key, Static) and axis == LENGTH:
            dynamic = not path and not isinstance(key, Slice) and self._dynamic.is_dynamic(flow, key)
            return VARIES if dynamic else None
        return self.size(flow, whole, path, axis)

    def _of_operator(
        self, flow: ValueFlow, operator: Operator, arguments: Sequence[Atom], call: Apply | None, axis: int
    ) -> Size | None:
        if operator.memory.joins is not None and operator.memory.joins == operator.indexing.axis and call is not None:
            return self._joined_along(flow, operator.memory.joins, call, axis)
        if operator.pattern not in (Pattern.ELEMENTWISE, Pattern.BROADCAST):
            return None
        sizes = {self.size(flow, a, (), axis) for a in arguments}
        found = {s for s in sizes if s is not None and self._may_have_axis(s, axis)}
        return found.pop() if len(found) == 1 else None

    def _may_have_axis(self, size: Size, axis: int) -> bool:
        """False if this is the size of something that is known to have no such axis."""
        if size.root is None or self._start.dim(size.root, axis) is not None:
            return True
        return self._start.value(size.root[0]) is None

    def _joined_along(self, flow: ValueFlow, name: str, call: Apply, axis: int) -> Size | None:
        """The size of tensors that are joined along the axis of that name."""
        written = dict(call.keywords).get(name, call.arguments[1] if len(call.arguments) > 1 else Static(0))
        match flow.origin(call.arguments[0]) if call.arguments else None:
            case MakeTuple(items) | Apply(Static(Intrinsic("list")), items) if isinstance(written, Static) and items:
                sizes = [self.size(flow, item, (), axis) for item in items]
                return _sum(sizes) if written.value == axis else sizes[0]
            case _:
                return None

    def _of_call(self, flow: ValueFlow, call: Apply, path: Path, axis: int) -> Size | None:
        if isinstance(call.function, Static):
            return self._of_builtin(flow, call, path, axis)
        called = flow.called(call)
        if called is not None:
            inside = called.result_path(call, path)
            ends = called.flow.results(called.function.label, 0)
            return None if inside is None else _joined([self.size(called.flow, e, inside, axis) for e in ends], False)
        value = flow.origin(call.function)
        operator = resolve_name(value.name) if isinstance(value, Attribute) else None
        if not isinstance(value, Attribute) or operator is None or path or axis == LENGTH:
            return None
        owner = flow.scope.resolve(value.value.name) if isinstance(value.value, Global) else None
        is_method = not isinstance(owner, types.ModuleType)
        arguments = (value.value, *call.arguments) if is_method else call.arguments
        return self._of_operator(flow, operator, arguments, call, axis)

    def _of_builtin(self, flow: ValueFlow, call: Apply, path: Path, axis: int) -> Size | None:
        assert isinstance(call.function, Static)
        function = call.function.value
        name, given = function.name if isinstance(function, Intrinsic) else "", call.arguments
        if name in ("list", "given_back"):
            return self._of_items(flow, given, path, axis)
        if name == "set_field":
            return self._of_update(flow, given[0], given[1], given[2], path, axis)
        if name == "pop":
            size = self.size(flow, given[0], path[1:], axis) if path == (1,) and axis == LENGTH else None
            return None if size is None else size.plus(-1)
        if path or axis != LENGTH:
            return None
        if name == "growing":
            return VARIES
        if name == "clear":
            return Size(None, 0)
        if name == "spread":
            sizes = [self.size(flow, item, path, axis) for item in given]
            return None if None in sizes else _sum(sizes)
        if name not in _GROWTH and function is not list:
            return None
        size = self.size(flow, given[0], path, axis) if len(given) > 0 else None
        return None if size is None else size.plus(_GROWTH.get(name, 0))

    def _is_of_any_size(self, flow: ValueFlow, atom: Atom) -> bool:
        """True if a tensor has a data-dependent size."""
        size = self.size(flow, atom, (), 0)
        while size is not None and size.root is not None and size.root[0] in flow.carried and not size.root[1]:
            loop, position = flow.carried[size.root[0]]
            size = self.size(flow, loop.initial[position], (), 0)
        if size is None or size.root is None:
            return size is not None
        dim = self._start.dim(size.root, 0)
        return dim is not None and (dim is ANY or mentions_made(dim))


_GROWTH = {"append": 1, "insert": 1, "remove": -1, "reverse": 0, "sort": 0}
"""By how much functions that Python's syntax calls make a list longer."""


def _sliced(size: Size, part: Atom | Slice) -> Size | None:
    """The size of a slice of an axis."""
    assert isinstance(part, Slice)
    bounds = [p.value if isinstance(p, Static) else 0 if p is None else None for p in (part.start, part.stop)]
    match bounds:
        case [int() as start, int() as stop] if part.step is None and start >= 0:
            if stop > 0:
                return Size(None, 0, int(stop > start), True)
            return size.plus(stop - start)
        case _:
            return None


def _sum(sizes: Sequence[Size | None]) -> Size | None:
    """The size of tensors of these sizes one after another."""
    known = [s for s in sizes if s is not None]
    for varying in (DATA_DEPENDENT, VARIES):
        if varying in known:
            return varying
    first = next((s for s in known if s.root is not None), known[0] if known else None)
    total, at_least = Size(None, 0), len(known) < len(sizes)
    for size in known:
        if first is not None and size.root not in (None, first.root):
            at_least = True
            continue
        root = size.root or total.root
        total = Size(root, total.scale + size.scale, total.offset + size.offset, total.at_least or size.at_least)
    return total.plus(int(at_least), at_least)


def _joined(sizes: Sequence[Size | None], by_run: bool) -> Size | None:
    """The size of a value that has one of these, and the run decides which, or perhaps the checker."""
    found = set(sizes)
    if len(found) == 1:
        return found.pop()
    varying = found & {VARIES, DATA_DEPENDENT}
    if varying and (by_run or varying == found):
        return DATA_DEPENDENT if DATA_DEPENDENT in varying else VARIES
    exact = {s for s in found if s is not None and not s.at_least}
    return VARIES if by_run and exact == found and len({s.root for s in exact}) == 1 else None
