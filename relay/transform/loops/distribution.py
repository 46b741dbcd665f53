"""Loop distribution: sums of matrix products over the rounds of a loop become one product after the loop.

    loop for t < n (dw = a) { .. next (add(dw, matmul(h, d))) }
    loop for t < n (hs = zeros, ds = zeros) { .. next (index_update(hs, t, h), index_update(ds, t, d)) }
    dw = add(a, sum over t and the inner axis of hs and ds, as one matmul)

What changes in a loop is collected, row by row, in arrays that it carries; rows of an array that is there already are
not. What the sum of the calls of many rounds is as one call is in the operator's definition (`total`). Only loops that
run all their rounds, whose number is known or follows from sizes, are split, and only if a product is larger than what
is collected for it.

A sum is added up in another order than before, so the result may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from relay.errors import RelayError
from relay.ir import dims
from relay.ir.dims import ANY
from relay.ir.expr import Atom, Binding, Block, Expr, Loop, Module, Next, OpCall, StackGet, Var
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.types import TensorType, TupleType
from relay.operator import ADDITION, Emitter, IndexKind, Value, lookup
from relay.transform.analysis.loop_analysis import (
    LARGE_SIZE,
    MOST_ROUNDS,
    SMALL_SIZE,
    RoundValues,
    bound_in,
    elements,
    exceeds,
    is_too_large,
    likely,
    runs_all,
    uses,
)
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.core.rebuilding import map_bodies
from relay.transform.loops.batching import MAX_SIZE, batched_call
from relay.transform.module_pass import pass_about

_DEEPEST = 8  # how many changes of layout stand between what is collected and the product


@pass_about(Loop)
def distribute_loops(module: Module, max_size: int = MAX_SIZE) -> Module:
    """The module with sums of products moved after the loop, where what is collected for one has at most `max_size`
    bytes."""
    return map_bodies(module, lambda function: _block(function.body, ValueRanges(function.body), max_size))


def _block(block: Block, integers: ValueRanges, max_size: int) -> Block:
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, lambda inner: _block(inner, integers, max_size))
        made = rebind(binding, value)
        if isinstance(value, Loop) and isinstance(value.body.terminator, Next) and runs_all(value):
            count = None if bound_dims(value.body) else integers.count(value)
            if count is not None and integers.is_size(count) and likely(count, LARGE_SIZE) <= MOST_ROUNDS:
                bindings += _LoopDistribution(made, value, value.body.terminator, integers, max_size).split()
                continue
        bindings.append(made)
    return rebuild_block(block, bindings, block.terminator)


@attrs.frozen
class _LoopSum:
    """A parameter's value in the next round: itself, terms that stay, and products, whose sum goes after the loop."""

    staying: tuple[Atom, ...]
    totals: tuple[Value, ...]


class _LoopDistribution:
    """One loop whose body ends in `end`."""

    def __init__(self, binding: Binding, loop: Loop, end: Next, integers: ValueRanges, max_size: int) -> None:
        self.binding, self.loop, self.end, self.integers, self.max_size = binding, loop, end, integers, max_size
        count = integers.count(loop)
        assert loop.counter is not None and count is not None
        self.count = count
        self.inside = bound_in(loop)
        self.calls: dict[Var, OpCall] = {}
        self.values = RoundValues(loop)
        for each in loop.body.bindings:
            if isinstance(each.value, OpCall):
                self.calls[each.targets[0]] = each.value
                self.values.add(each.targets[0], each.value)
        self.uses = uses(loop.body)
        rows = [c.arguments for c in self.calls.values() if self._is_row(c)]
        self.order: Atom = rows[0][1] if rows else loop.counter.index  # in it rows are collected, so each is only once
        arrays = (array.type for array, *_ in rows)  # type: ignore[union-attr]
        self.present = [*(t for t in arrays if isinstance(t, TensorType)), *self._recorded_types()]
        self.before, self.within, self.after = Emitter(loop.span), Emitter(loop.span), Emitter(loop.span)
        self.collected: dict[tuple[Var, Atom], tuple[Var, Value, Atom, Var]] = {}  # parameter, start, next, result

    def _recorded_types(self) -> Iterator[TensorType]:
        """The types of other arrays with an entry for each round: those that the loop carries, and the tapes that it
        reads."""
        for parameter in self.loop.parameters:
            type_ = parameter.type
            if isinstance(type_, TensorType) and type_.shape and self.integers.equal(type_.shape[0], self.count):
                yield type_
        for binding in self.loop.body.bindings:
            entry = binding.targets[0].type if isinstance(binding.value, StackGet) else None
            for part in entry.items if isinstance(entry, TupleType) else (entry,):
                if isinstance(part, TensorType):
                    yield TensorType(part.base, (self.count, *part.shape))

    def split(self) -> list[Binding]:
        """The loop without the sums, with the bindings before and after it."""
        sums: dict[int, _LoopSum] = {}
        for position, (parameter, value) in enumerate(zip(self.loop.parameters, self.end.values, strict=True)):
            found = self._sum(parameter, value)
            if found is not None:
                sums[position] = found
        if not sums:
            return [self.binding]
        next_values = list(self.end.values)
        results = list(self.binding.targets)
        for position, each in sums.items():
            rest = self.within.value(self.loop.parameters[position])
            for atom in each.staying:
                rest = rest + self.within.value(atom)
            next_values[position] = rest.atom
            results[position] = Var(results[position].name, results[position].type, results[position].span)
        carried = list(self.collected.values())
        body = Block(
            (*self.loop.body.bindings, *self.within.bindings),
            Next(self.loop.label, (*next_values, *(c[2] for c in carried)), self.end.span),
        )
        loop = Loop(
            self.loop.label,
            (*self.loop.parameters, *(c[0] for c in carried)),
            (*self.loop.initial, *(c[1].atom for c in carried)),
            body,
            self.loop.counter,
            self.loop.span,
        )
        after = list(self.after.bindings)
        for position, each in sums.items():
            emitter = Emitter(self.loop.span)
            added = emitter.value(results[position])
            for part in each.totals:
                added = added + Value(emitter, part.atom, part.type)
            last = emitter.bindings[-1]
            after += [*emitter.bindings[:-1], Binding((self.binding.targets[position],), last.value)]
        return [*self.before.bindings, Binding((*results, *(c[3] for c in carried)), loop), *after]

    # ---- sums

    def _sum(self, parameter: Var, value: Atom) -> _LoopSum | None:
        """The sum that a parameter carries, if there are products in it and nothing else reads it."""
        if self.uses.get(parameter, 0) != 1 or not isinstance(value, Var) or value is parameter:
            return None
        leaves = self._leaves(value, parameter)
        if leaves.count(parameter) != 1:
            return None
        terms = [leaf for leaf in leaves if leaf is not parameter]
        totals = {n: total for n, term in enumerate(terms) if (total := self._total(parameter, term)) is not None}
        if not totals:
            return None
        return _LoopSum(tuple(t for n, t in enumerate(terms) if n not in totals), tuple(totals.values()))

    def _leaves(self, value: Atom, parameter: Var) -> list[Atom]:
        """The operands of a tree of additions, in order. Only sums that nothing else reads are searched."""
        leaves: list[Atom] = []
        pending = [value]
        while pending:
            atom = pending.pop()
            call = self.calls.get(atom) if isinstance(atom, Var) else None
            inner = call is not None and call.operator == ADDITION and isinstance(atom, Var)
            if inner and self.uses.get(atom, 0) == 1 and atom.type == parameter.type:  # type: ignore[arg-type,union-attr]
                assert call is not None
                pending += reversed(call.arguments)
            else:
                leaves.append(atom)
        return leaves

    def _total(self, parameter: Var, term: Atom) -> Value | None:
        """The sum of a term over all rounds, after the loop; None where it cannot be one call, or does not pay."""
        call = self.calls.get(term) if isinstance(term, Var) else None
        if call is None or lookup(call.operator).batching.summed is None or term.type != parameter.type:  # type: ignore[union-attr]
            return None
        index = self._index(call.arguments)
        lengths = [len(e.bindings) for e in (self.before, self.within, self.after)]
        carried = dict(self.collected)
        arrays = [self._array(atom, index, 0) for atom in call.arguments]
        new = [key[0] for key in self.collected if key not in carried]
        product = elements(term)
        cost = dims.total(e for variable in new if (e := elements(variable)) is not None)
        total: Value | None = None
        pays = product is not None and exceeds(product, dims.multiply(2, cost), added_up=SMALL_SIZE)
        if pays and all(a is not None for a in arrays):
            try:
                total = lookup(call.operator).batching.summed(*arrays, **call.attributes)  # type: ignore[misc]
            except (TypeError, RelayError):
                total = None
        if total is None or total.type != parameter.type:
            for emitter, length in zip((self.before, self.within, self.after), lengths, strict=True):
                del emitter.bindings[length:]
            self.collected = carried
            return None
        return total

    # ---- the values of all rounds

    def _index(self, atoms: Sequence[Atom]) -> Atom:
        """The index by which the operands' rows are ordered: that of rows that are there already, if there are any."""
        pending = [(a, 0) for a in atoms]
        while pending:
            atom, depth = pending.pop()
            call = self.calls.get(atom) if isinstance(atom, Var) else None
            if call is not None and self._is_row(call):
                return call.arguments[1]
            if call is not None and self._is_layout(call) and depth < _DEEPEST:
                pending += [(a, depth + 1) for a in call.arguments]
        return self.order

    def _is_row(self, call: OpCall) -> bool:
        """True if a call reads a row of an array with a row for each round, and each row once."""
        if lookup(call.operator).indexing.kind is not IndexKind.ROW or call.arguments[0] in self.inside:
            return False
        type_ = call.arguments[0].type  # type: ignore[union-attr]
        if not isinstance(type_, TensorType) or not self.integers.equal(type_.shape[0], self.count):
            return False
        return self._reads_each(call.arguments[1])

    def _reads_each(self, index: Atom) -> bool:
        """True if an index is each of 0 .. count - 1 in one round."""
        assert self.loop.counter is not None
        place, number = self.integers.scalar_dim(index), self.integers.scalar_dim(self.loop.counter.index)
        if place is None or number is None:
            return False
        if place is number or self.integers.equal(dims.add(place, number), dims.subtract(self.count, 1)):
            return True
        places = self.values.round_values(index)
        if places is None or places.ndim == 0:
            return False
        return bool(np.array_equal(np.sort(places), np.arange(len(places))))

    @staticmethod
    def _is_layout(call: OpCall) -> bool:
        return lookup(call.operator).indexing.kind in (IndexKind.PERMUTE, IndexKind.RESHAPE)

    def _array(self, atom: Atom, index: Atom, depth: int) -> Value | None:
        """The values of an atom in all rounds, after the loop."""
        if not isinstance(atom, Var) or atom not in self.inside or not isinstance(atom.type, TensorType):
            return None
        call = self.calls.get(atom)
        if call is not None and self._is_row(call) and call.arguments[1] is index:
            return self.after.value(call.arguments[0])
        if call is not None and self._is_layout(call) and depth < _DEEPEST:
            parts = [self._array(a, index, depth + 1) for a in call.arguments]
            if any(p is None for p in parts):
                return None
            return batched_call(call, [p for p in parts if p is not None], (True,) * len(parts))
        return self._collect(atom, atom.type, index)

    def _collect(self, variable: Var, type_: TensorType, index: Atom) -> Value | None:
        """Carry an array with a row for each round."""
        key = (variable, index)
        if key not in self.collected:
            if ANY in type_.shape:
                return None
            shape = (self.count, *type_.shape)
            whole = TensorType(type_.base, shape)
            if is_too_large(whole, self.present, self.max_size):
                return None
            start = self.before.call(lookup("zeros"), (), {"shape": shape, "dtype": type_.base})  # type: ignore[dict-item]
            parameter = Var(f"{variable.name}_rounds", whole, self.loop.span)
            updated = self.within.value(parameter).op(
                "index_update", self.within.value(index), self.within.value(variable)
            )
            result = Var(f"{variable.name}_rounds", whole, self.loop.span)
            self.collected[key] = parameter, start, updated.atom, result
        return self.after.value(self.collected[key][3])
