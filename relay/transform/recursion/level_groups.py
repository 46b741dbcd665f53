"""Groups of a schedule: the loop that computes all tasks of a structural recursion, a group of nodes at a time.

    for each group:  fields, states of parts = those of its nodes, side by side
                     for each node of it: the arm, with states of parts in place of calls
                     the rows of the group = the results

The loop over the nodes of a group is left to loop vectorization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span
from relay.ir.dims import Dim
from relay.ir.expr import Atom, Binding, Block, MakeTuple, Match, MatchArm, StackGet, Var, Yield
from relay.ir.rebuild import copy_block
from relay.ir.traverse import free_variables
from relay.ir.types import INT64, DataType, StackType, TensorType, TupleType, Type
from relay.operator import Emitter, Value, lookup
from relay.transform.recursion.level_schedule import (
    Schedule,
    at,
    bound_dim,
    branch,
    element,
    for_loop,
    items,
    length,
    local,
    number,
    put,
    shared_arguments,
    zeros,
)
from relay.transform.recursion.list_parts import map_results
from relay.transform.recursion.recursion_arms import Constructed, Part, RecursionArm
from relay.transform.recursion.structural_recursion import StructuralRecursion

_Write: TypeAlias = Callable[[Emitter, Mapping[Var, Atom], list[Value]], Sequence[Value]]


@attrs.frozen(eq=False)
class _Group:
    """One group, in its round: its number, its first row, and the number of its rows."""

    index: Value
    start: Value
    extent: Dim

    def rows(self, out: Emitter, table: Value) -> Value:
        """The part of a table of all rows that is for those of the group."""
        first = out.call(lookup("stack"), [local(out, self.start)], {"axis": 0})
        return local(out, table).op("dynamic_slice", first, sizes=(self.extent,))


class Groups:
    """The loop over the groups of a schedule."""

    def __init__(
        self,
        schedule: Schedule,
        arguments: Mapping[int, Atom],
        recursion: StructuralRecursion,
        span: Span | None,
    ) -> None:
        self.schedule, self.arguments, self.recursion, self.span = schedule, arguments, recursion, span
        self.names = list(recursion.functions)

    def write(self, out: Emitter) -> dict[str, list[Value]]:
        """The results of all tasks of each function: an array of all rows for each tensor of one result."""
        start: list[Value] = []
        for function in self.recursion.functions.values():
            start += [zeros(out, (self.schedule.tasks, *t.shape), t) for t in result_types(function.result)]
        groups = self.schedule.groups

        def group(body: Emitter, i: Value, state: list[Value]) -> Sequence[Value]:
            others = bound_dim(body, "others", at(body, groups.counts, i) - 1)
            place = _Group(i, at(body, groups.starts, i), others + 1)  # a group is never empty, which its type tells
            return self._choose(body, 0, at(body, groups.kinds, i), place, state)

        found = for_loop(out, "group", local(out, groups.number), start, group)
        return self._by_function(found)

    def _by_function(self, arrays: Sequence[Value]) -> dict[str, list[Value]]:
        made, rest = {}, iter(arrays)
        for name, function in self.recursion.functions.items():
            made[name] = [next(rest) for _ in result_types(function.result)]
        return made

    def _choose(self, out: Emitter, key: int, kind: Value, group: _Group, state: Sequence[Value]) -> list[Value]:
        arms = self.recursion.arms

        def this(body: Emitter) -> list[Value]:
            return self._arm(body, arms[key], group, [local(body, v) for v in state])

        def go_on(body: Emitter) -> list[Value]:
            return self._choose(body, key + 1, kind, group, [local(body, v) for v in state])

        if key == len(arms) - 1:
            return this(out)
        return branch(out, local(out, kind) == key, this, go_on, "arrays")

    def _arm(self, out: Emitter, arm: RecursionArm, group: _Group, state: list[Value]) -> list[Value]:
        """The arrays with the results of a group, by one arm."""
        function = self.recursion.functions[arm.function]
        members, firsts = (group.rows(out, table) for table in (self.schedule.members, self.schedule.firsts))
        fields = {**self._fields(out, arm, members), **self._passed(out, arm, members)}
        leaves = result_types(function.result)
        arrays = self._by_function(state)
        lengths = self._length(out, arm, group)

        def row(body: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
            mapping = shared_arguments(self.recursion, function, self.arguments)
            for field, table in fields.items():
                mapping[field] = at(body, table, i).atom
            mapping.update((variable, value.atom) for variable, value in lengths.items())
            first = at(body, firsts, i) if arm.parts or arm.lists else None
            for offset, part in enumerate(arm.parts):
                assert first is not None
                mapping[part.target] = self._result(body, part, first + offset, arrays).atom
            block = Block(arm.bindings, Yield((arm.result,)))
            if arm.lists:
                assert first is not None
                block = self._with_results(body, arm, block, first, lengths, arrays)
            block = copy_block(block, mapping)
            for binding in block.bindings:
                body.emit(binding.targets, binding.value)
            assert isinstance(block.terminator, Yield)
            result_ = result_tensors(body, body.value(block.terminator.values[0], function.result))
            return [put(body, a, i, v) for a, v in zip(found, result_, strict=True)]

        start = [zeros(out, (group.extent, *t.shape), t) for t in leaves]
        new = for_loop(out, "member", out.number(group.extent, INT64), start, row)
        arrays[arm.function] = [
            _with_rows(out, a, rows, group.start) for a, rows in zip(arrays[arm.function], new, strict=True)
        ]
        return [a for name in self.names for a in arrays[name]]

    def _result(self, out: Emitter, part: Part, task: Value, arrays: Mapping[str, list[Value]]) -> Value:
        """The result of a call, by the number of its task."""
        place = at(out, self.schedule.places, task)
        rows = iter([at(out, a, place) for a in arrays[part.function]])
        return result_structure(out, self.recursion.functions[part.function].result, rows)

    def _length(self, out: Emitter, arm: RecursionArm, group: _Group) -> dict[Var, Value]:
        """The length of the list that an arm goes through, which is that of each node of the group."""
        if not arm.lists:
            return {}
        assert self.schedule.groups.sizes is not None
        elements = at(out, self.schedule.groups.sizes, group.index) - len(arm.parts)
        field, lengths = arm.fields[arm.lists[0].field], dict(arm.lengths)
        return {lengths[field]: elements.op("floor_divide", len(arm.lists))}

    def _with_results(
        self,
        out: Emitter,
        arm: RecursionArm,
        block: Block,
        first: Value,
        lengths: Mapping[Var, Value],
        arrays: Mapping[str, list[Value]],
    ) -> Block:
        """An arm's block that reads arrays of results in place of lists of them."""
        (elements,) = lengths.values()
        read: dict[Var, Callable[[StackGet], list[Binding]]] = {}
        for number_, part in enumerate(arm.lists):
            start = first + len(arm.parts) + local(out, elements) * number_

            def bindings(get: StackGet, part: Part = part, start: Value = start) -> list[Binding]:
                inner = Emitter(get.span)
                place = local(inner, start) + inner.value(get.index).op("cast", dtype=INT64)
                found = self._result(inner, part, place, arrays)
                target = Var("result", found.type, get.span)
                return [*inner.all_bindings(), Binding((target,), found.atom)]

            read[part.target] = bindings
        return map_results(block, read)

    def _fields(self, out: Emitter, arm: RecursionArm, members: Value) -> dict[Var, Value]:
        """The tensors in the fields of a group's nodes, side by side, and the lengths of lists that may differ."""
        through = {arm.fields[part.field] for part in arm.lists}
        read_fields = {f: f for f in arm.fields if isinstance(f.type, TensorType)}
        read_fields.update({length: field for field, length in arm.lengths if field not in through})
        read_fields = {variable: field for variable, field in read_fields.items() if _is_used(arm, variable)}
        if not read_fields:
            return {}
        function, nodes = self.recursion.functions[arm.function], self.schedule.nodes[self.names.index(arm.function)]
        parameter = function.parameters[function.position]
        last = max(n for n, known in enumerate(arm.known) if {*read_fields.values()}.intersection(known.fields))

        def read(body: Emitter, i: Value, found: list[Value]) -> Sequence[Value]:
            node = element(body, local(body, nodes), self._place(body, at(body, members, i)))

            def write(inner: Emitter, names: Mapping[Var, Atom], tables: list[Value]) -> Sequence[Value]:
                found = [inner.value(names[field]) for field in read_fields.values()]
                own = [length(inner, v) if isinstance(v.type, StackType) else v for v in found]
                return [put(inner, t, local(inner, i), v) for t, v in zip(tables, own, strict=True)]

            return _take_apart(body, arm.known[: last + 1], {parameter: node.atom}, found, write)

        types = [v.type for v in read_fields if isinstance(v.type, TensorType)]
        (extent,) = members.shape
        start = [zeros(out, (extent, *t.shape), t) for t in types]
        made = for_loop(out, "fields", out.number(extent, INT64), start, read)
        return dict(zip(read_fields, made, strict=True))

    def _passed(self, out: Emitter, arm: RecursionArm, members: Value) -> dict[Var, Value]:
        """The values of parameters that calls change, for a group's nodes side by side."""
        function, found = self.recursion.functions[arm.function], dict[Var, Value]()
        (extent,) = members.shape
        for position in function.passed:
            parameter, stack = function.parameters[position], self.schedule.passed[arm.function, position]
            if not _is_used(arm, parameter):
                continue
            assert isinstance(parameter.type, TensorType)

            def read(body: Emitter, i: Value, table: list[Value], stack: Value = stack) -> Sequence[Value]:
                place = self._place(body, at(body, members, i))
                return [put(body, table[0], i, element(body, local(body, stack), place))]

            start = zeros(out, (extent, *parameter.type.shape), parameter.type)
            (found[parameter],) = for_loop(out, "passed", out.number(extent, INT64), [start], read)
        return found

    def _place(self, out: Emitter, task: Value) -> Value:
        """The number of a task among those of its function."""
        if self.schedule.visits is None:
            return task
        return items(out, element(out, local(out, self.schedule.visits), task))[1]


def _is_used(arm: RecursionArm, field: Var) -> bool:
    return field in free_variables(Block(arm.bindings, Yield((arm.result,))))


def _with_rows(out: Emitter, array: Value, rows: Value, first_row: Value) -> Value:
    """An array with some of its rows, from a place on, replaced."""
    starts = [local(out, first_row), *(number(out, 0) for _ in range(array.ndim - 1))]
    first = out.call(lookup("stack"), starts, {"axis": 0})
    return array.op("dynamic_update_slice", rows, first)


def _take_apart(
    out: Emitter, known: Sequence[Constructed], names: Mapping[Var, Atom], state: list[Value], write: _Write
) -> list[Value]:
    """The state after `write`, which gets the fields of values whose constructors are known; `names` has the values."""
    if not known:
        return list(write(out, names, state))
    first, *others = known
    assert isinstance(first.value.type, DataType)
    arms = []
    for constructor in first.value.type.definition.constructors:
        inner = Emitter(out.span)
        fields = tuple(Var("field", type_, out.span) for type_ in constructor.fields)
        found = [local(inner, v) for v in state]
        if constructor.name == first.constructor:
            here = {**names, **dict(zip(first.fields, fields, strict=True))}
            found = _take_apart(inner, others, here, found, write)
        end = Yield(tuple(v.atom for v in found))
        arms.append(MatchArm(constructor.name, fields, Block(inner.all_bindings(), end)))
    targets = tuple(Var("fields", v.type, out.span) for v in state)
    out.emit(targets, Match(names[first.value], tuple(arms), out.span))
    return [out.value(t) for t in targets]


def result_types(type_: Type) -> list[TensorType]:
    """The types of the tensors in a result."""
    if isinstance(type_, TupleType):
        return [leaf for item in type_.items for leaf in result_types(item)]
    assert isinstance(type_, TensorType)
    return [type_]


def result_tensors(out: Emitter, value: Value) -> list[Value]:
    """The tensors in a result."""
    if isinstance(value.type, TupleType):
        return [leaf for item in out.components(value) for leaf in result_tensors(out, item)]
    return [value]


def result_structure(out: Emitter, type_: Type, leaves: Iterator[Value]) -> Value:
    """A result of these tensors."""
    if isinstance(type_, TupleType):
        parts = [result_structure(out, item, leaves) for item in type_.items]
        return out.bind(MakeTuple(tuple(p.atom for p in parts), out.span), type_, "whole")
    return next(leaves)
