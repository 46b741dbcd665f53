"""Loop analysis: what a loop binds, its trip count, and the values of its counter's expressions in each round."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relay.errors import RelayError
from relay.ir.dims import ANY, Dim, TypeId, evaluate, multiply, product, variables
from relay.ir.expr import Atom, Block, Constant, Exit, Loop, LoopLabel, Next, OpCall, Var
from relay.ir.sizes.facts import facts
from relay.ir.traverse import all_blocks, bound_variables, operands, terminator_operands, walk
from relay.ir.types import BaseType, TensorType
from relay.operator import Emitter, Pattern, lookup

LIKELY_SIZE = 64
"""The assumed value of a symbolic dim in decisions about what pays."""

LARGE_SIZE = 1024
"""The assumed value of a symbolic dim in decisions about what is too large."""

SMALL_SIZE = 8
"""The assumed value of a symbolic dim over which products sum, where they are larger than their operands, as a batch
in the gradient of weights."""

SEVERAL = 4
"""The multiple of others' size that an array of all rounds may have: the gates of an LSTM have four times its state."""

MOST_ROUNDS = 1 << 16
"""Expressions of the counter are evaluated for all rounds of loops with at most this many."""


def bound_in(loop: Loop) -> set[Var]:
    """All that a loop binds: its parameters, its counter, and everything in its body."""
    found = set(bound_variables(loop))
    for binding in walk(loop.body):
        found.update(binding.targets)
        found.update(bound_variables(binding.value))
    return found


def rounds(loop: Loop) -> int | None:
    """The number of rounds of a loop that runs all of them; None if it is not known."""
    if loop.counter is None or not isinstance(loop.counter.count, Constant) or not runs_all(loop):
        return None
    return max(0, int(loop.counter.count.value))


def runs_all(loop: Loop) -> bool:
    """True if a loop runs all the rounds of its counter."""
    return loop.counter is not None and not leads_to(loop.body, loop.label, Exit)


def leads_to(body: Block, label: LoopLabel, kind: type[Exit] | type[Next]) -> bool:
    """True if an Exit (a Next) of a loop is somewhere in its body."""
    ends = (b.terminator for b in all_blocks(body))
    return any(isinstance(end, kind) and end.label is label for end in ends)


def uses(body: Block) -> dict[Var, int]:
    """The number of reads of each variable in a block and inside it."""
    counts: dict[Var, int] = {}
    for block in all_blocks(body):
        atoms = [a for b in block.bindings for a in operands(b.value)] + list(terminator_operands(block.terminator))
        for atom in atoms:
            if isinstance(atom, Var):
                counts[atom] = counts.get(atom, 0) + 1
    return counts


def elements(atom: Atom) -> Dim | None:
    """The number of elements of a tensor; None for other values, and where no dim determines it."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    size = product(type_.shape) if isinstance(type_, TensorType) else ANY
    return None if size is ANY else size


def exceeds(larger: Dim, smaller: Dim, added_up: int = LIKELY_SIZE) -> bool:
    """True if one size is larger than another: always, or else where all that is symbolic is `LIKELY_SIZE`, or
    `added_up` if it is in the other one only."""
    answer = facts().at_least(smaller, larger)
    if answer is not None:
        return not answer
    own = set(variables(larger))
    sizes = {v: LIKELY_SIZE if v in own else added_up for v in variables(smaller) if isinstance(v, TypeId)}
    return likely(larger) > evaluate(smaller, sizes)


def likely(size: Dim, each: int = LIKELY_SIZE) -> int:
    """A size, where symbolic dims are taken to be `each`."""
    return evaluate(size, {v: each for v in variables(size) if isinstance(v, TypeId)})


def is_too_large(made: TensorType, present: Iterable[TensorType], most: int) -> bool:
    """True if a tensor has more than `most` bytes, where symbolic dims are taken to be `LARGE_SIZE`. For a product
    of several this is a poor estimate; so a tensor of symbolic size may also be `SEVERAL` times as large as one
    `present`."""
    size = product(made.shape)
    if likely(size, LARGE_SIZE) * made.dtype.itemsize <= most:
        return False
    if isinstance(size, int):
        return True
    sizes = [multiply(product(p.shape), SEVERAL * p.dtype.itemsize) for p in present if ANY not in p.shape]
    return all(exceeds(multiply(size, made.dtype.itemsize), several) for several in sizes)


def may_fail(call: OpCall) -> bool:
    """True if an operator has a requirement that does not follow from its operands' types and constants."""
    operator = lookup(call.operator)
    if not operator.requirements:
        return False
    emitter = Emitter(call.span)
    try:
        values = [emitter.value(a) for a in call.arguments]
        return any(r.holds(*values, **call.attributes) is not None for r in operator.requirements)
    except (TypeError, RelayError):
        return True


def scales_cotangents(call: OpCall) -> bool:
    """True if a call's derivative is finite for all operands: it is linear in what is not constant."""
    operator = lookup(call.operator)
    if operator.algebra.jointly_linear:
        return True
    numbers = [n for n, a in enumerate(call.arguments) if _is_float(a)]
    varying = [n for n in numbers if not isinstance(call.arguments[n], Constant)]
    return not varying or (len(varying) == 1 and varying[0] in operator.algebra.linear)


def _is_float(atom: Atom) -> bool:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    return isinstance(type_, TensorType) and isinstance(type_.base, BaseType) and type_.base.is_float


class RoundValues:
    """The values of scalar expressions of a loop's counter in all rounds, as far as they are computed elementwise."""

    def __init__(self, loop: Loop) -> None:
        self.count = rounds(loop)
        self.values: dict[Var, np.ndarray] = {}
        if loop.counter is not None and isinstance(loop.counter.count, Constant):
            count = max(0, int(loop.counter.count.value))
            if count <= MOST_ROUNDS:
                self.values[loop.counter.index] = np.arange(count, dtype=loop.counter.count.value.dtype)

    def round_values(self, atom: Atom) -> np.ndarray | None:
        """The value in each round, or one for all; None if it is not known."""
        if isinstance(atom, Constant):
            return atom.value if atom.value.ndim == 0 else None
        return self.values.get(atom) if isinstance(atom, Var) else None

    def add(self, target: Var, call: OpCall) -> np.ndarray | None:
        """The values of an operator call, which are remembered for its target."""
        operator = lookup(call.operator)
        if operator.pattern not in (Pattern.ELEMENTWISE, Pattern.BROADCAST) or not self.values or not call.arguments:
            return None
        if not isinstance(target.type, TensorType) or target.type.shape != ():
            return None
        found = [self.round_values(a) for a in call.arguments]
        known = [f for f in found if f is not None]
        if len(known) < len(found) or all(f.ndim == 0 for f in known) or any(f.size == 0 for f in known):
            return None
        try:
            values: np.ndarray = operator.evaluate(known, call.attributes)
        except (RelayError, ArithmeticError, ValueError):
            return None
        self.values[target] = values
        return values


def with_body_block(loop: Loop, body: Block) -> Loop:
    """The loop with another body."""
    return Loop(loop.label, loop.parameters, loop.initial, body, loop.counter, loop.span)
