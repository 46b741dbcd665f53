"""Lists of parts: calls of a recursion on all elements of a list in a field.

    h = x;  for c in children: h = h + f(c, w)        as        h = x;  for i < length: h = h + results[i]

A loop with a round for each element, in each of which the call is made, makes them all; so the results of all calls are
there before the loop. A list of values, one for each element, which a loop makes, is computed where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Loop,
    Next,
    OpCall,
    RefNew,
    RefRead,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_block, map_blocks, rebind, rebuild_block
from relay.ir.traverse import free_variables
from relay.ir.types import INT64, DataType, RefType, StackType, scalar
from relay.operator import Emitter
from relay.transform.recursion.recursion_arms import Obstacle


@attrs.frozen(eq=False)
class ListCall:
    """A call on each element of a list, with results in a variable. `before` is all that comes before the call in the
    block and in the loop, `unknown` what differs from round to round."""

    field: Var
    call: Call
    results: Var
    before: tuple[Binding, ...]
    unknown: frozenset[Var]


@attrs.frozen(eq=False)
class ListParts:
    """A block that reads the results of calls on elements, the calls, and the length of each list that it asks for."""

    block: Block
    calls: tuple[ListCall, ...]
    lengths: Mapping[Var, Var]


@attrs.frozen(eq=False)
class _ListOfValues:
    """A list with a value for each element, or a reference to it: the bindings that compute it for an index."""

    index: Var
    bindings: tuple[Binding, ...]
    value: Atom
    is_cell: bool


def is_list_of_data(field: Var) -> bool:
    """True for a list of values of data types whose length does not change."""
    element = field.type.element if isinstance(field.type, StackType) else None
    return isinstance(element.content if isinstance(element, RefType) else element, DataType)


def find_list_parts(block: Block, fields: Sequence[Var]) -> ListParts:
    """The calls on elements of lists among some fields. Raises Obstacle if the block does something else with these."""
    lists = {field for field in fields if is_list_of_data(field)}
    if not lists.intersection(free_variables(block)):
        return ListParts(block, (), {})
    found = _Lists(lists)
    made = found.block(block)
    if len({call.field for call in found.calls}) > 1:
        raise Obstacle("it goes through several lists of parts", found.calls[-1].call.span)
    return ListParts(made, tuple(found.calls), found.lengths)


class _Lists:
    """The lists of one block."""

    def __init__(self, lists: set[Var]) -> None:
        self.lists = lists
        self.calls: list[ListCall] = []
        self.lengths: dict[Var, Var] = {}
        self.counts: dict[Var, Var] = {}  # the list whose length a variable is
        self.new: set[Var] = set()
        self.made: dict[Var, tuple[Var, _ListOfValues]] = {}
        self.cells: set[Var] = set()  # what stands for a value that is read from it

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for position, binding in enumerate(block.bindings):
            value = binding.value
            match value:
                case StackNew():
                    self.new.add(binding.targets[0])
                case Loop():
                    changed = self._loop(value, block.bindings[:position])
                    made = self._list_of(changed)
                    if made is not None:
                        self.made[binding.targets[0]] = made
                    else:
                        bindings += self._bindings(rebind(binding, changed))
                case _:
                    bindings += self._bindings(binding)
        used = free_variables(Block(tuple(bindings), block.terminator))
        lost = [v for v in used if v in self.new or v in self.made]
        if lost:
            raise Obstacle("it makes a list otherwise than of one value for each part", lost[0].span)
        return rebuild_block(block, bindings, block.terminator)

    def _bindings(self, binding: Binding) -> list[Binding]:
        """The bindings that take the place of one in which lists are read."""
        match binding.value:
            case StackLength(Var() as stack) if stack in self.lists or stack in self.made:
                field = stack if stack in self.lists else self.made[stack][0]
                length = self.lengths.setdefault(field, Var("length", scalar(INT64), field.span))
                self.counts[binding.targets[0]] = field
                return [Binding(binding.targets, length)]
            case OpCall("cast", (Var() as number,)) if number in self.counts:
                self.counts[binding.targets[0]] = self.counts[number]
                return [binding]
            case StackGet(Var() as stack, index) if stack in self.made:
                _, made = self.made[stack]
                out = Emitter(binding.value.span)
                place = out.value(index).op("cast", dtype=out.value(made.index).base).atom
                copied = copy_block(Block(made.bindings, Yield((made.value,))), {made.index: place})
                assert isinstance(copied.terminator, Yield)
                if made.is_cell:
                    self.cells.add(binding.targets[0])
                last = Binding(binding.targets, copied.terminator.values[0])
                return [*out.all_bindings(), *copied.bindings, last]
            case RefRead(Var() as cell) if cell in self.cells:
                return [Binding(binding.targets, cell)]
            case _:
                return [rebind(binding, map_blocks(binding.value, self._inner))]

    def _inner(self, block: Block) -> Block:
        bindings = [b for binding in block.bindings for b in self._bindings(binding)]
        return rebuild_block(block, bindings, block.terminator)

    def _loop(self, loop: Loop, before: Sequence[Binding]) -> Loop:
        """A loop with results in place of calls on the elements of its list."""
        counter, end = loop.counter, loop.body.terminator
        field = self.counts.get(counter.count) if counter is not None and isinstance(counter.count, Var) else None
        if counter is None or field is None or not isinstance(end, Next) or end.label is not loop.label:
            return loop
        counters, elements = {counter.index}, set[Var]()
        bindings: list[Binding] = []
        for binding in loop.body.bindings:
            match binding.value:
                case OpCall("cast", (place,)) if place in counters:
                    counters.add(binding.targets[0])
                case StackGet(stack, place) if stack is field and place in counters:
                    elements.add(binding.targets[0])
                    continue
                case RefRead(cell) | (Var() as cell) if cell in elements:
                    elements.add(binding.targets[0])
                    continue
                case Call() as call if elements.intersection(a for a in call.arguments if isinstance(a, Var)):
                    type_ = binding.targets[0].type
                    assert type_ is not None
                    results = Var("results", StackType(type_), call.span)
                    whole = Call(call.function, tuple(field if a in elements else a for a in call.arguments), call.span)
                    inside = loop.body.bindings[: loop.body.bindings.index(binding)]
                    unknown = frozenset({*loop.parameters, counter.index})
                    self.calls.append(ListCall(field, whole, results, (*before, *inside), unknown))
                    bindings.append(Binding(binding.targets, StackGet(results, counter.index, call.span)))
                    continue
                case _:
                    pass
            bindings.append(binding)
        body = Block(tuple(bindings), end)
        if elements.intersection(free_variables(body)):
            raise Obstacle("it uses a part in a list otherwise than in a call", loop.span)
        return Loop(loop.label, loop.parameters, loop.initial, body, counter, loop.span)

    def _list_of(self, loop: Loop) -> tuple[Var, _ListOfValues] | None:
        """The list with a value for each element that a loop makes, beside the field with the elements."""
        counter, end = loop.counter, loop.body.terminator
        field = self.counts.get(counter.count) if counter is not None and isinstance(counter.count, Var) else None
        if counter is None or field is None or len(loop.parameters) != 1 or loop.initial[0] not in self.new:
            return None
        if not isinstance(end, Next) or end.label is not loop.label or not loop.body.bindings:
            return None
        last, before = loop.body.bindings[-1], loop.body.bindings[:-1]
        push = last.value
        if not isinstance(push, StackPush) or end.values != last.targets or push.stack is not loop.parameters[0]:
            return None
        value, is_cell = push.value, False
        for binding in before:
            if isinstance(binding.value, RefNew) and binding.targets[0] is value:
                value, is_cell = binding.value.value, True
                before = tuple(b for b in before if b is not binding)
        if loop.parameters[0] in free_variables(Block(before, Yield((value,)))):
            return None
        return field, _ListOfValues(counter.index, self._inner(Block(before, Yield((value,)))).bindings, value, is_cell)


def map_results(block: Block, read: Mapping[Var, Callable[[StackGet], list[Binding]]]) -> Block:
    """A block in which reading a result of a call on an element is something else: bindings, of which the last binds
    the result."""

    def inner(body: Block) -> Block:
        bindings: list[Binding] = []
        for binding in body.bindings:
            value = binding.value
            if isinstance(value, StackGet) and isinstance(value.stack, Var) and value.stack in read:
                found = read[value.stack](value)
                bindings += [*found, Binding(binding.targets, found[-1].targets[0])]
            else:
                bindings.append(rebind(binding, map_blocks(value, inner)))
        return rebuild_block(body, bindings, body.terminator)

    return inner(block)
