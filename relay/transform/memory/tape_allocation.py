"""Tape allocation: stacks of a known capacity become tensors that are written and read by index.

A stack of tensors that starts empty and gets at most one entry in each round of a counted loop never has more than the
loop has rounds; with n of them

    s = stack                       (l, b) = (0, undef(n, ..))
    next L (push p e)               next L (l + 1, b with e at l)
    get s i, len s                  b[i], l

with one tensor for each tensor of an entry. Where every round pushes, the entry's place is the round's number, and the
length is left out if nobody asks for it. Entries that hold such stacks themselves, the tapes of inner loops, become
tensors with two axes of rounds, and so on. Stacks that other loops fill, that pass through functions, cells or data, or
whose loop may end long before its last round stay as they are, and grow. `capacities` finds out which are which.
"""

from __future__ import annotations

import numpy as np

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Constant,
    Expr,
    Function,
    MakeTuple,
    Module,
    OpCall,
    Project,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Terminator,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import walk
from relay.ir.types import INT64, TensorType, TupleType
from relay.operator import Emitter
from relay.transform.aggregates.flat_types import undef
from relay.transform.core.rebuilding import map_bodies
from relay.transform.memory.stack_bounds import Form, StackAnalysis, StackClass
from relay.transform.module_pass import pass_about


@pass_about(StackPush)
def allocate_tapes(module: Module) -> Module:
    """The module with tensors in place of the stacks whose capacity is known."""
    return map_bodies(module, _allocate)


def _allocate(function: Function) -> Block:
    if not any(isinstance(b.value, StackPush) for b in walk(function.body)):
        return function.body
    kinds = StackAnalysis(function)
    if not any(k.capacity is not None for k in kinds.stack_classes()):
        return function.body
    return _TapeAllocation(kinds).block(function.body)


class _TapeAllocation:
    def __init__(self, kinds: StackAnalysis) -> None:
        self.kinds = kinds
        self.vars: dict[Var, Var] = {}

    def var(self, var: Var) -> Var:
        """The variable at its new type."""
        found = self.vars.get(var)
        if found is None:
            form = self.kinds.forms[var]
            found = var if isinstance(form, TensorType) else Var(var.name, self.kinds.type_of(form), var.span)
            if found.type == var.type:
                found = var
            self.vars[var] = found
        return found

    def atom(self, atom: Atom) -> Atom:
        return self.var(atom) if isinstance(atom, Var) and atom in self.kinds.forms else atom

    def block(self, block: Block) -> Block:
        out: list[Binding] = []
        for binding in block.bindings:
            value, targets = binding.value, tuple(map(self.var, binding.targets))
            emitter = Emitter(getattr(value, "span", None))
            made: Expr
            match value:
                case StackNew() if (kind := self.kinds.kind(binding.targets[0])).capacity is not None:
                    made = MakeTuple(tuple(self._empty(emitter, kind)), value.span)
                case StackNew(_, span):
                    made = StackNew(self.kinds.type_of(self.kinds.kind(binding.targets[0]).element), span)
                case StackPush(stack, pushed) if (kind := self.kinds.kind(stack)).capacity is not None:
                    made = self._push(emitter, stack, self.atom(pushed), kind)
                case StackGet(stack, index) if (kind := self.kinds.kind(stack)).capacity is not None:
                    made = self._get(emitter, self.atom(stack), self.atom(index), kind)
                case StackLength(stack) if self.kinds.kind(stack).capacity is not None:
                    made = Project(self.atom(stack), 0, value.span)
                case _:
                    made = map_parts(value, atom=self.atom, block=self.block, var=self.var)
            out += emitter.bindings
            out.append(Binding(targets, made))
        return Block(tuple(out), self._end(block.terminator))

    def _end(self, terminator: Terminator) -> Terminator:
        return map_terminator(terminator, self.atom)

    def _empty(self, emitter: Emitter, kind: StackClass) -> list[Atom]:
        length = [Constant(np.zeros((), np.int64))] if kind.measured else []
        tensors = self.kinds.tensors(kind)[len(length) :]
        return [*length, *(undef(emitter, t) for t in tensors if t is not None)]

    def _push(self, emitter: Emitter, stack: Atom, pushed: Atom, kind: StackClass) -> Expr:
        buffers = self._items(emitter, self.atom(stack), kind)
        parameter = self.kinds.definition(stack)
        assert isinstance(parameter, Var)
        growth = self.kinds.growths[parameter]
        items: list[Atom] = []
        if growth.always:
            assert growth.loop.counter is not None
            place = self.atom(growth.loop.counter.index)
        else:
            place = buffers[0]
        if kind.measured:
            del buffers[0]
            items.append((emitter.value(place).op("cast", dtype=INT64) + 1).atom)
        for buffer, part in zip(buffers, self._parts(emitter, pushed, kind.element), strict=True):
            call = OpCall("index_update", (buffer, place, part), {}, emitter.span)
            items.append(emitter.bind(call, buffer.type, "buffer").atom)  # type: ignore[union-attr,arg-type]
        return MakeTuple(tuple(items), emitter.span)

    def _get(self, emitter: Emitter, held: Atom, index: Atom, kind: StackClass) -> Expr:
        buffers = self._items(emitter, held, kind)[int(kind.measured) :]
        parts: list[Atom] = []
        for buffer in buffers:
            type_ = buffer.type  # type: ignore[union-attr]
            assert isinstance(type_, TensorType)
            entry = TensorType(type_.base, type_.shape[1:])
            parts.append(emitter.bind(OpCall("index", (buffer, index), {}, emitter.span), entry, "entry").atom)
        return self._assemble_value(emitter, parts, kind.element)

    def _items(self, emitter: Emitter, held: Atom, kind: StackClass) -> list[Atom]:
        tensors = self.kinds.tensors(kind)
        return [emitter.bind(Project(held, i), t, "item").atom for i, t in enumerate(tensors) if t is not None]

    def _parts(self, emitter: Emitter, atom: Atom, form: Form) -> list[Atom]:
        """The tensors that a value consists of."""
        type_ = self.kinds.type_of(form)
        if not isinstance(type_, TupleType):
            return [atom]
        inner = form if isinstance(form, tuple) else type_.items
        found: list[Atom] = []
        for position, (item, part) in enumerate(zip(type_.items, inner, strict=True)):
            found += self._parts(emitter, emitter.bind(Project(atom, position), item, "part").atom, part)
        return found

    def _assemble_value(self, emitter: Emitter, parts: list[Atom], form: Form) -> Expr:
        """The value that consists of the first tensors of the list, which are removed from it."""
        type_ = self.kinds.type_of(form)
        if not isinstance(type_, TupleType):
            return parts.pop(0)
        inner = form if isinstance(form, tuple) else type_.items
        items: list[Atom] = []
        for item, part in zip(type_.items, inner, strict=True):
            made = self._assemble_value(emitter, parts, part)
            items.append(made if isinstance(made, Var | Constant) else emitter.bind(made, item, "part").atom)
        return MakeTuple(tuple(items), emitter.span)
