"""Batching: the calls of an operator on many examples as one call, or a short sequence of calls.

    ys = batch_call(op, (xs, w), (True, False), attributes)        ys[i] = op(xs[i], w)

An operand that is marked as batched has the examples along a new first axis, of one extent for all; the others are the
same for each example. Every tensor of the result has the examples along a new first axis.

The call comes from the first of these that exists:

    Batching.rule               the operator's own rule
    Pattern.ELEMENTWISE         the same call
    Pattern.BROADCAST           the same, with axes of extent 1 so that operands stay aligned at their last axes
    Indexing.reduction_axes     the same call, with the axes counted one further
    Indexing.axis               the same, where operands that are the same for each example are stretched
    Indexing.kind               the permutation, reshape or slice with one more axis
    composition                 the calls of the body, each batched
    otherwise                   a loop over the examples

A rule is a function `rule(batch, *operands, **attributes)` on symbolic values (a variadic operator's gets the tuple of
operands), which returns the result, or a tuple of several, or None where there is no such call: then it is a loop. A
rule that is `LOOP` says so for all calls. Requirements are not a part of a call, so rules need not keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.errors import InternalError, RelayError, TypeMismatch
from relay.ir.dims import ANY, Dim
from relay.ir.expr import (
    Atom,
    AttributeValue,
    Block,
    Constant,
    Counter,
    Exit,
    Extent,
    Function,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    OpCall,
    Project,
    Var,
)
from relay.ir.sizes.facts import facts
from relay.ir.types import INT32, INT64, BaseType, TensorType, TupleType, Type, scalar
from relay.operator.definition import REQUIRED, Operator, Pattern
from relay.operator.facets import LOOP, IndexKind
from relay.operator.registry import lookup
from relay.operator.symbolic import Emitter, Value
from relay.operator.undetermined import Undetermined

Rule: TypeAlias = "Callable[..., Value | Sequence[Value] | None]"

_LARGEST_INT32 = 2**31 - 1

EXAMPLES = "examples"
"""The name of the loops of operators that have no call on all examples."""


@attrs.frozen(eq=False)
class Batch:
    """One call to be batched.

    Attributes:
        operator: what is called.
        batched: for each operand, whether it has the examples as a new first axis.
        size: the number of examples.
        types: the operands' types for one example.
        result: the result's type for one example.
        loops: whether the call may become a loop.
    """

    operator: Operator
    batched: tuple[bool, ...]
    size: Dim
    types: tuple[TensorType, ...]
    result: Type
    loops: bool = True

    def call(self, *operands: Value, **attributes: Any) -> Value:
        """Call the operator itself."""
        return operands[0].emitter.call(self.operator, operands, attributes)

    def rank(self, position: int = 0) -> int:
        """The rank of an operand for one example."""
        return self.types[position].rank

    def stretch(self, value: Value, position: int) -> Value:
        """An operand with a first axis for the examples, though it may be the same for all."""
        return value if self.batched[position] else value.op("broadcast_to", shape=(self.size, *value.shape))

    def stretch_all(self, values: Sequence[Value]) -> list[Value]:
        """All operands, with a first axis for the examples."""
        return [self.stretch(value, position) for position, value in enumerate(values)]

    @property
    def tensor(self) -> TensorType:
        """The type of the only result for one example."""
        assert isinstance(self.result, TensorType)
        return self.result


def batch_call(
    operator: Operator,
    operands: Sequence[Value],
    batched: Sequence[bool],
    attributes: Mapping[str, AttributeValue],
    *,
    loops: bool = True,
) -> Value | None:
    """Emit the calls of an operator on all examples as one value; at least one operand is batched. Without `loops` None
    where it would need a loop, and then nothing is emitted.

    Raises TypeMismatch where the batched operands differ in the number of examples, or a rule of a user's gives a wrong
    type, and what the operator's type raises for one example.
    """
    emitter = operands[0].emitter
    attributes = {**{n: v for n, v in operator.attributes.items() if v is not REQUIRED}, **attributes}
    batch = _batch(operator, operands, batched, attributes, loops)
    aside = Emitter(emitter.span)
    values = tuple(aside.value(value.atom, value.type) for value in operands)
    made = _apply_rule(batch, values, attributes)
    if made is None and loops:
        aside.bindings.clear()
        made = _loop(batch, aside, values, attributes)
    if made is None:
        return None
    emitter.items += aside.items
    return emitter.value(made.atom, made.type)


def _batch(
    operator: Operator,
    operands: Sequence[Value],
    batched: Sequence[bool],
    attributes: Mapping[str, AttributeValue],
    loops: bool,
) -> Batch:
    sizes = [v.shape[0] for v, marked in zip(operands, batched, strict=True) if marked]
    if not sizes:
        raise InternalError(f"a call of {operator.name} without a batched operand")
    for size in sizes[1:]:
        if size != sizes[0] and facts().equal(size, sizes[0]) is not True:
            raise TypeMismatch(f"the operands of {operator.name} are batched with {sizes[0]} and {size} examples")
    types = tuple(
        TensorType(v.base, v.shape[1:] if marked else v.shape) for v, marked in zip(operands, batched, strict=True)
    )
    return Batch(operator, tuple(batched), sizes[0], types, operator.infer(types, attributes), loops)


def _apply_rule(batch: Batch, operands: tuple[Value, ...], attributes: Mapping[str, AttributeValue]) -> Value | None:
    """The result of the operator's rule for a call; None for a loop."""
    operator, rule = batch.operator, batching_rule(batch.operator)
    if rule is LOOP:
        return None
    try:
        made = rule(batch, *((operands,) if operator.variadic else operands), **attributes)
    except (RelayError, Undetermined):
        if operator.batching.rule is not None:
            raise
        return None  # an operator of the user's that is for certain shapes
    if made is None:
        return None
    value = made if isinstance(made, Value) else operands[0].emitter.tuple(made)
    if not _has_examples(value.type, batch):
        if operator.batching.rule is None:
            return None
        raise TypeMismatch(
            f"the batching rule of {operator.name} gives {value.type} for {batch.size} examples of {batch.result}"
        )
    return value


def _has_examples(type_: Type, batch: Batch) -> bool:
    """True if a type is that of the results of all examples."""

    def fits(found: Type, single: Type) -> bool:
        if isinstance(single, TupleType):
            return (
                isinstance(found, TupleType)
                and len(found.items) == len(single.items)
                and all(map(fits, found.items, single.items))
            )
        if not isinstance(single, TensorType) or not isinstance(found, TensorType) or found.base != single.base:
            return False
        wanted = (batch.size, *single.shape)
        return len(found.shape) == len(wanted) and all(
            a == b or facts().equal(a, b) is not False for a, b in zip(found.shape, wanted, strict=True)
        )

    return fits(type_, batch.result)


# ---- rules that follow from the definition


def batching_rule(operator: Operator) -> Any:
    """The rule for an operator: a function, or LOOP."""
    indexing = operator.indexing
    if operator.batching.rule is not None:
        return operator.batching.rule
    if operator.pattern is Pattern.BROADCAST:
        return _batch_broadcast
    if operator.pattern is Pattern.ELEMENTWISE or operator.memory.constant is not None:
        return _batch_elementwise
    if indexing.reduction_axes is not None:
        return _batch_reduction
    if indexing.axis is not None:
        return _batch_along_axis
    if indexing.kind in _KINDS:
        return _KINDS[indexing.kind]
    return LOOP if operator.composition is None else batch_body


def _batch_elementwise(batch: Batch, *operands: Value, **attributes: Any) -> Value:
    return batch.call(*batch.stretch_all(operands), **attributes)


def _batch_broadcast(batch: Batch, *operands: Value, **attributes: Any) -> Value:
    return batch.call(*align(batch, operands), **attributes)


def align(batch: Batch, operands: Sequence[Value]) -> list[Value]:
    """The operands with axes of extent 1 after the examples', so that the others are aligned at the last ones."""
    ranks = [value.ndim - marked for value, marked in zip(operands, batch.batched, strict=True)]
    aligned = []
    for value, marked, rank in zip(operands, batch.batched, ranks, strict=True):
        missing = max(ranks) - rank
        if marked and missing:
            value = value.op("reshape", shape=(batch.size, *(1,) * missing, *value.shape[1:]))
        aligned.append(value)
    return aligned


def shift_axes(axes: Any, rank: int) -> Any:
    """Axes of one example, of this rank, as axes of the batch; None for all of them."""
    if axes is None:
        return tuple(range(1, rank + 1))
    return axes % rank + 1 if isinstance(axes, int) else tuple(axis % rank + 1 for axis in axes)


def _batch_reduction(batch: Batch, x: Value, **attributes: Any) -> Value:
    name = batch.operator.indexing.reduction_axes
    assert name is not None
    return batch.call(x, **{**attributes, name: shift_axes(attributes[name], batch.rank())})


def _batch_along_axis(batch: Batch, *operands: Any, **attributes: Any) -> Value | None:
    name = batch.operator.indexing.axis
    assert name is not None
    values = batch.stretch_all(operands[0] if batch.operator.variadic else operands)
    if not isinstance(attributes[name], int):
        return None
    return batch.call(*values, **{**attributes, name: shift_axes(attributes[name], batch.rank())})


def batch_reshape(batch: Batch, x: Value, **attributes: Any) -> Value:
    """A rule: each example's elements in their order, in the shape of its result."""
    return x.op("reshape", shape=(batch.size, *batch.tensor.shape))


def _batch_permutation(batch: Batch, x: Value, axes: Any) -> Value:
    return batch.call(
        x, axes=(0, *shift_axes(tuple(range(batch.rank()))[::-1] if axes is None else axes, batch.rank()))
    )


def _batch_slice(batch: Batch, x: Value, begin: Any, end: Any, strides: Any) -> Value:
    return batch.call(x, begin=(0, *begin), end=(batch.size, *end), strides=(1, *strides))


_KINDS: dict[IndexKind | None, Rule] = {
    IndexKind.PERMUTE: _batch_permutation,
    IndexKind.RESHAPE: batch_reshape,
    IndexKind.SLICE: _batch_slice,
}


# ---- the body of a composite operator


def batch_body(batch: Batch, *operands: Any, **attributes: Any) -> Value | None:
    """A rule for composites: the calls of a body that is a sequence of calls, each batched where an operand of it is;
    None for others."""
    composition = batch.operator.composition
    assert composition is not None
    values = operands[0] if batch.operator.variadic else operands
    return _batched_body(composition.body(batch.types, attributes).core.main, batch, values)


def _batched_body(function: Function, batch: Batch, operands: Sequence[Value]) -> Value | None:
    emitter = operands[0].emitter
    examples: dict[Atom, bool] = {}
    values: dict[Atom, Value | list[tuple[Value, bool]]] = {}
    given = list(zip(operands, batch.batched, strict=True))
    if batch.operator.variadic:
        values[function.parameters[0]] = given
    else:
        for parameter, (value, marked) in zip(function.parameters, given, strict=True):
            values[parameter], examples[parameter] = value, marked

    def find(atom: Atom) -> tuple[Value, bool] | list[tuple[Value, bool]]:
        if isinstance(atom, Constant):
            return emitter.value(atom), False
        value = values[atom]
        return value if isinstance(value, list) else (value, examples[atom])

    for binding in function.body.bindings:
        made: Any
        match binding.value:
            case OpCall(name, arguments, attributes):
                found = [find(a) for a in arguments]
                made = _call_in_body(lookup(name), found, attributes, emitter, batch.loops)
                if made is None:
                    return None
            case Project(whole, index):
                items = find(whole)
                if not isinstance(items, list):
                    return None
                made = items[index]
            case MakeTuple(items):
                made = [find(item) for item in items]
                if any(isinstance(item, list) for item in made):
                    return None
            case Extent(_, base):
                made = emitter.bind(binding.value, scalar(base), "size"), False
            case Var() | Constant():
                made = find(binding.value)
            case _:
                return None
        (target,) = binding.targets
        if isinstance(made, list):
            values[target] = made
        else:
            values[target], examples[target] = made
    if not isinstance(function.body.terminator, Exit):
        return None
    last = find(function.body.terminator.values[0])
    parts = last if isinstance(last, list) else [last]
    stretched = [
        value if marked else value.op("broadcast_to", shape=(batch.size, *value.shape)) for value, marked in parts
    ]
    return emitter.tuple(stretched) if isinstance(last, list) else stretched[0]


def _call_in_body(
    operator: Operator, found: Sequence[Any], attributes: Mapping[str, AttributeValue], emitter: Emitter, loops: bool
) -> Any:
    """A value and whether it is batched, or several; None where that needs a loop and there is to be none."""
    values, marked = [value for value, _ in found], [is_batched for _, is_batched in found]
    made: Value | None
    if any(marked):
        made = batch_call(operator, values, marked, attributes, loops=loops)
    else:
        made = emitter.call(operator, values, attributes)
    if made is None:
        return None
    if isinstance(made.type, TupleType):
        return [(item, any(marked)) for item in emitter.components(made)]
    return made, any(marked)


# ---- the loop


def _loop(
    batch: Batch, emitter: Emitter, operands: tuple[Value, ...], attributes: Mapping[str, AttributeValue]
) -> Value:
    """The call for each example, in a loop that writes the results to rows."""
    results = list(batch.result.items) if isinstance(batch.result, TupleType) else [batch.result]
    base = INT32 if isinstance(batch.size, int) and batch.size <= _LARGEST_INT32 else INT64
    index = Var("i", scalar(base), emitter.span)
    parameters, initial = [], []
    for type_ in results:
        assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
        if any(dim is ANY for dim in type_.shape):
            raise TypeMismatch(f"the results of {batch.operator.name} may differ in shape between the examples")
        shape: Any = (batch.size, *type_.shape)
        start = emitter.call(lookup("undef"), (), {"shape": shape, "dtype": type_.base})
        initial.append(start.atom)
        parameters.append(Var("rows", start.type, emitter.span))
    inside = Emitter(emitter.span)
    place = inside.value(index)
    given = [
        inside.value(v.atom, v.type).op("index", place) if marked else inside.value(v.atom, v.type)
        for v, marked in zip(operands, batch.batched, strict=True)
    ]
    made = inside.call(batch.operator, given, attributes)
    items = inside.components(made) if isinstance(made.type, TupleType) else [made]
    rows = [inside.value(p).op("index_update", place, item) for p, item in zip(parameters, items, strict=True)]
    label = LoopLabel(EXAMPLES)
    body = Block(tuple(inside.bindings), Next(label, tuple(row.atom for row in rows)))
    counter = Counter(index, emitter.number(batch.size, base).atom)
    targets = [Var("results", p.type, emitter.span) for p in parameters]
    loop = Loop(label, tuple(parameters), tuple(initial), body, counter, emitter.span)
    emitter.emit(tuple(targets), loop)
    values = [emitter.value(target) for target in targets]
    return emitter.tuple(values) if isinstance(batch.result, TupleType) else values[0]
