"""Stages: the te stages of a kernel, and the properties that schedules depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from tvm import te, tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

from relay.codegen.tvm.tir import Expression

Extent = Any
"""The number of rounds of a loop: an int, or an expression of the kernel's symbolic dims."""

LOAD = "te.tensor_load"


@attrs.frozen(eq=False)
class Stage:
    """A stage: one or several tensors over the same axes, computed element by element."""

    op: Any
    axes: tuple[Any, ...]  # variables
    extents: tuple[Extent, ...]
    reduced_axes: tuple[Any, ...]
    reduced: tuple[Extent, ...]

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduced_axes)

    @property
    def dtypes(self) -> list[str]:
        return [str(self.op.output(i).dtype) for i in range(self.op.num_outputs)]

    @property
    def loads(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The reads of the stage in its function: tensors and indices."""
        return [load for body in self.op.body for load in loads(body)]

    @property
    def work(self) -> Extent:
        """The number of elements that are computed, or, in a reduction, combined."""
        return volume((*self.extents, *self.reduced))


def extent(value: Any) -> Extent:
    """A dim of te as an int, if it is a number."""
    return int(value.value) if isinstance(value, tirx.IntImm) else value


def is_one(value: Extent) -> bool:
    """True if an extent is the number 1."""
    return isinstance(value, int) and value == 1


def volume(extents: Sequence[Extent]) -> Extent:
    """The product of extents."""
    result: Extent = 1
    for factor in extents:
        result = factor if isinstance(result, int) and result == 1 else result * factor
    return result


def has_equal_extents(left: Sequence[Extent], right: Sequence[Extent]) -> bool:
    """True if extents are surely equal."""
    return len(left) == len(right) and all(
        a == b if isinstance(a, int) and isinstance(b, int) else not isinstance(a, int) and not isinstance(b, int)
        and equal_expressions(a, b)
        for a, b in zip(left, right, strict=True)
    )  # fmt: skip


def equal_expressions(left: Expression, right: Expression) -> bool:
    """True if expressions are the same."""
    from tvm_ffi import structural_equal

    return bool(left.same_as(right) or structural_equal(left, right))


def stage_of(op: Any) -> Stage:
    """The stage that a te.compute made."""
    return Stage(
        op,
        tuple(a.var for a in op.axis),
        tuple(extent(a.dom.extent) for a in op.axis),
        tuple(a.var for a in op.reduce_axis),
        tuple(extent(a.dom.extent) for a in op.reduce_axis),
    )


def in_order(outputs: Sequence[Any]) -> list[Any]:
    """The operations that tensors are computed with, those first that others read."""
    order: list[Any] = []
    done: dict[Any, None] = {}
    pending = [output.op for output in reversed(outputs)]
    while pending:
        op = pending[-1]
        missing = [t.op for t in op.input_tensors if t.op not in done]
        if missing and op not in done:
            pending += missing
            continue
        pending.pop()
        if op not in done:
            done[op] = None
            order.append(op)
    return order


def loads(expression: Expression) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The tensors that an expression reads, with the indices."""
    found: list[tuple[Any, tuple[Any, ...]]] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "") == LOAD:
            found.append((call.args[0], tuple(call.args[1:])))

    structural_walk(expression, ((Call, visit),))
    return iter(found)


def mentions(expression: Any, variable: Any) -> bool:
    """True if a variable occurs in an expression."""
    found: list[Any] = []
    structural_walk(expression, ((tirx.Var, lambda v: found.append(v) if v.same_as(variable) else None),))
    return bool(found)


def substitute_variables(
    expression: Expression,
    variables: Mapping[Any, Expression],
    load: Callable[[Any, Sequence[Any]], Expression] | None = None,
) -> Expression:
    """The expression with other variables, and with `load(tensor, indices)`, if given, for what it reads."""
    if load is None:
        return structural_map(expression, ((tirx.Var, lambda v: variables.get(v, v)),))

    def call(node: Any) -> Any:
        return load(node.args[0], node.args[1:]) if getattr(node.op, "name", "") == LOAD else node

    return structural_map(expression, ((tirx.Var, lambda v: variables.get(v, v)), (Call, call)))


def with_fresh_names(part: Any) -> Any:
    """An expression or statement where every occurrence of a name's definition has its own name: TVM's passes require
    that, and elements that are computed in several places, or used twice, repeat them.

    They fail, too, where the simplifier makes something else of a name's value the second time it comes across it. It
    does where an index that is a constant here, as at the start of a sequence, is a term of the value: such a number is
    no constant for the simplifier, but for LLVM. Choices by it have been made.
    """

    def fresh_let(let: Any) -> Any:
        variable = tirx.Var(let.var.name, let.var.ty)
        body = structural_map(let.body, ((tirx.Var, lambda v: variable if v.same_as(let.var) else v),))
        return tirx.Let(variable, let.value, body)

    return structural_map(part, ((tirx.Cast, _opaque_constant), (tirx.Select, _resolve_select), (tirx.Let, fresh_let)))


_BITS = {"float32": "int32", "float64": "int64"}

_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def _is_constant_integer(expression: Any) -> bool:
    """True if an expression is arithmetic on constant integers."""
    if isinstance(expression, tirx.Add | tirx.Sub | tirx.Mul):
        return _is_constant_integer(expression.a) and _is_constant_integer(expression.b)
    return isinstance(expression, tirx.IntImm)


def _opaque_constant(cast: Any) -> Any:
    """A constant integer as a float that the simplifier does not look into; any other conversion as it is."""
    target = str(cast.ty)
    if target not in _BITS or not _is_constant_integer(cast.value):
        return cast
    number = tirx.const(float(int(Analyzer().simplify(cast.value))), target)
    return tirx.reinterpret(target, tirx.reinterpret(_BITS[target], number))


def _resolve_select(select: Any) -> Any:
    """The arm of a choice that constant integers decide; any other choice as it is."""
    condition = select.condition
    if not isinstance(condition, _COMPARISONS) or not all(map(_is_constant_integer, (condition.a, condition.b))):
        return select
    return select.true_value if bool(Analyzer().simplify(condition)) else select.false_value


CALL, CHOICE, NAMES = "call", "choice", "names"


def is_choice(call: Any) -> bool:
    """True if a call computes only one of two."""
    return str(getattr(call.op, "name", "")).endswith(".if_then_else")


def features(expression: Expression) -> set[str]:
    """The features that decide whether TVM makes vectors of an expression: CALL if it calls C's functions, CHOICE if
    it computes only one of two, and NAMES if it has some."""
    found: set[str] = set()

    def visit(call: Any) -> None:
        if str(getattr(call.op, "name", "")).endswith(".call_pure_extern"):
            found.add(CALL)
        elif is_choice(call):
            found.add(CHOICE)

    structural_walk(expression, ((Call, visit), (tirx.Let, lambda let: found.add(NAMES))))
    return found


def is_compute(op: Any) -> bool:
    return isinstance(op, te.ComputeOp)
