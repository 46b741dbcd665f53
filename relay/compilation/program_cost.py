"""Cost of a program: floating-point operations and bytes moved, by line and operator, as formulas of the sizes.

Costs are counted on the first-order program that runs, derivatives and fusion included, without running it: the sum
over its kernels (`relay.operator.cost`), each as often as the loops around it have rounds.

    for of n rounds      n times its body
    while, for of a count that is computed         one round
    if, match            the most expensive arm
    recursion            its body once

Where one of the last three was met, the cost is an estimate. Formulas are for sizes from 1 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from relay.errors import Span
from relay.ir.dims import (
    DataDependentDim,
    Dim,
    TypeId,
    evaluate,
    maximum,
    multiply,
    product,
    substitute,
    subtract,
    total,
    variables,
)
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Extent,
    Function,
    Global,
    If,
    Loop,
    Match,
    Module,
    OpCall,
    Var,
)
from relay.ir.sizes.extents import Place, symbolic_dims
from relay.ir.types import TensorType, TupleType, Type
from relay.operator.cost import Cost, kernel_cost
from relay.support.tables import aligned_rows
from relay.transform.fusion.fusion_groups import plan

if TYPE_CHECKING:
    from relay.compilation.stages import CompiledSignature


@attrs.frozen
class OperatorCost:
    """The cost of the calls of one operator at one line: how often it is called, floating-point operations, and
    bytes read and written. Each is a number, or a formula of the sizes that `f.cost` left symbolic."""

    operator: str
    file: str | None
    line: int | None
    text: str
    is_backward: bool
    calls: Dim
    flops: Dim
    bytes: Dim


@attrs.frozen(eq=False)
class ProgramCost:
    """The cost of a call of a function, by operators in the order of the program.

    `flops`, `bytes` and `memory` are numbers for the sizes of the arguments that were given; `formula` has the same as
    formulas of the sizes, and `at(n=..)` the numbers for others. `exact` is False where rounds of a loop, an arm of a
    branch or a size are known only when the program runs: then loops count one round, branches their most
    expensive arm, and `reasons` tells where.
    """

    name: str
    operators: tuple[OperatorCost, ...]
    sizes: Mapping[TypeId, int]
    reasons: tuple[str, ...]
    _memory: Callable[[], Dim] = attrs.field(repr=False)

    @property
    def exact(self) -> bool:
        """True if nothing had to be estimated."""
        return not self.reasons

    @property
    def flops(self) -> int:
        """Floating-point operations of a call."""
        return self._number(total(row.flops for row in self.operators))

    @property
    def bytes(self) -> int:
        """Bytes that kernels read and write in a call."""
        return self._number(total(row.bytes for row in self.operators))

    @property
    def memory(self) -> int:
        """Bytes of arguments, results and the memory plan together. The program is compiled to know it."""
        return self._number(self._memory())

    @property
    def formula(self) -> Formulas:
        """The same as formulas of the sizes."""
        rows = self.operators
        return Formulas(total(row.flops for row in rows), total(row.bytes for row in rows), self._memory)

    def at(self, **sizes: int) -> ProgramCost:
        """The cost for other sizes, by their names in the formulas. Raises KeyError for a name that there is not."""
        names = {str(variable): variable for variable in self.sizes}
        unknown = [name for name in sizes if name not in names]
        if unknown:
            raise KeyError(f"{self.name} has no size {unknown[0]!r}; it has {', '.join(names) or 'none'}")
        return attrs.evolve(self, sizes={**self.sizes, **{names[name]: size for name, size in sizes.items()}})

    def by_line(self) -> list[OperatorCost]:
        """The sums for each line, the most expensive first; `operator` names all of the line."""
        return self._sums(lambda row: (row.file, row.line))

    def by_operator(self) -> list[OperatorCost]:
        """The sums for each operator, the most expensive first."""
        return self._sums(lambda row: row.operator)

    def _sums(self, key: Callable[[OperatorCost], object]) -> list[OperatorCost]:
        groups: dict[object, list[OperatorCost]] = {}
        for row in self.operators:
            groups.setdefault(key(row), []).append(row)
        return sorted(map(_sum, groups.values()), key=lambda row: (-self._number(row.flops), -self._number(row.bytes)))

    def _number(self, dim: Dim) -> int:
        """A formula for the sizes; what is known only when the program runs counts as 0."""
        if isinstance(dim, int):
            return dim
        return max(evaluate(dim, {v: self.sizes.get(v, 0) for v in variables(dim) if isinstance(v, TypeId)}), 0)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("FLOP", "bytes", "calls", "operator", "line", "")]
        for row in self.operators:
            place = "" if row.file is None else f"{row.file.rsplit('/', 1)[-1]}:{row.line}"
            numbers = (str(self._number(amount)) for amount in (row.flops, row.bytes, row.calls))
            rows.append((*numbers, row.operator + " backward" * row.is_backward, place, row.text))
        found = self.formula
        head = [f"{self.name}: {self.flops} FLOP, {self.bytes} bytes moved{'' if self.exact else ', an estimate'}"]
        if self.sizes:
            given = ", ".join(f"{variable} = {size}" for variable, size in self.sizes.items())
            head += [f"  FLOP  = {found.flops}", f"  bytes = {found.bytes}", f"  for {given}"]
        return "\n".join([*head, *(f"  {reason}" for reason in self.reasons), *aligned_rows(rows, ">>><<<")])


@attrs.frozen(eq=False)
class Formulas:
    """Floating-point operations, bytes moved, and bytes of memory as formulas of the sizes."""

    flops: Dim
    bytes: Dim
    _memory: Callable[[], Dim] = attrs.field(repr=False)

    @property
    def memory(self) -> Dim:
        """Bytes of arguments, results and the memory plan together. The program is compiled to know it."""
        return self._memory()


def signature_cost(signature: CompiledSignature, given: Mapping[Place, int]) -> ProgramCost:
    """The cost of a call of a signature's program with these extents of arguments."""
    core, parameters = signature.core, signature.typed.main.parameters
    sizes = {dim: given[place] for dim, place in symbolic_dims(core).items()}

    def memory() -> Dim:
        from relay.codegen.lowering.probes import Probes

        probes = Probes(frozenset())
        signature.probed_program(core, probes)
        *_, workspace = probes.frames.values()  # the entry comes after what it calls
        held = [p.type for p in parameters if p.type is not None]
        return total([workspace, value_bytes(core.functions[core.entry].type.result), *map(value_bytes, held)])

    return program_cost(core, sizes, memory)


def program_cost(module: Module, sizes: Mapping[TypeId, int], memory: Callable[[], Dim]) -> ProgramCost:
    """The cost of a first-order module whose symbolic sizes have these numbers. Linear in the module's size."""
    meter = _Meter(module)
    rows = meter.function(module.entry)
    return ProgramCost(module.entry, tuple(_merge_rows(rows)), sizes, tuple(meter.reasons), memory)


def value_bytes(type_: Type) -> Dim:
    """The bytes of the arrays in a value of a type; those of lists and recursive data, which are not known, are 0."""
    match type_:
        case TensorType():
            return multiply(product(type_.shape), type_.dtype.itemsize)
        case TupleType(items):
            return total(map(value_bytes, items))
        case _:
            return 0


class _Meter:
    """Counts the blocks of one module; functions are counted once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.known: dict[str, list[OperatorCost] | None] = {}  # None: being counted
        self.reasons: dict[str, None] = {}

    def function(self, name: str) -> list[OperatorCost]:
        if name not in self.known:
            function = self.module.functions.get(name)
            self.known[name] = None
            self.known[name] = self.block(function.body, {}) if isinstance(function, Function) else []
        found = self.known[name]
        if found is None:
            self.estimate(f"{name} calls itself: its body counts once")
        return found or []

    def block(self, block: Block, outside: Mapping[Var, Dim]) -> list[OperatorCost]:
        groups, numbers = plan(block), dict(outside)
        rows: list[OperatorCost] = []
        for position, binding in enumerate(block.bindings):
            match binding.value:
                case OpCall():
                    group = groups.get(position)
                    if group is not None:
                        rows += self.kernel(group.bindings, group.outputs)
                case Extent(dim=dim):
                    numbers[binding.targets[0]] = dim
                case Call(Global(name)):
                    rows += self.function(name)
                case Call(span=span):
                    self.estimate(f"{_place(span)}a function that is selected at run time counts as nothing")
                case If() | Match() as branch:
                    rows += self.branch(branch, numbers)
                case Loop() as loop:
                    rows += self.loop(loop, numbers)
                case _:
                    pass
        return rows

    def kernel(self, bindings: Sequence[Binding], outputs: Sequence[Var]) -> Iterator[OperatorCost]:
        for binding, part in zip(bindings, kernel_cost(bindings, outputs, _above_one), strict=True):
            call, cost = binding.value, Cost(_from_one(part.flops), _from_one(part.bytes))
            assert isinstance(call, OpCall)
            for dim in (
                d for d in (cost.flops, cost.bytes) if any(isinstance(v, DataDependentDim) for v in variables(d))
            ):
                self.estimate(f"{_place(call.span)}a size is known when the program runs: {dim}")
            yield _row(call.operator, call.span, cost)

    def loop(self, loop: Loop, numbers: Mapping[Var, Dim]) -> list[OperatorCost]:
        rows = self.block(loop.body, numbers)
        count = None if loop.counter is None else _rounds(loop.counter.count, numbers)
        if count is None:
            if rows:
                self.estimate(f"{_place(loop.span)}the rounds of a loop are known when the program runs: one counts")
            return rows
        return [
            attrs.evolve(
                row,
                calls=multiply(row.calls, count),
                flops=multiply(row.flops, count),
                bytes=multiply(row.bytes, count),
            )
            for row in rows
        ]

    def branch(self, branch: If | Match, numbers: Mapping[Var, Dim]) -> list[OperatorCost]:
        rows: list[OperatorCost] = []
        arms: list[list[OperatorCost]] = []
        if isinstance(branch, If):
            for arm in branch.arms:
                rows += self.block(arm.condition, numbers)
                arms.append(self.block(arm.body, numbers))
            arms.append(self.block(branch.orelse, numbers))
        else:
            arms += (self.block(arm.body, numbers) for arm in branch.arms)
        costliest = max(arms, key=_weight, default=[])
        if any(_weight(arm) != _weight(costliest) for arm in arms):
            self.estimate(f"{_place(branch.span)}of a branch the most expensive arm counts")
        return rows + costliest

    def estimate(self, reason: str) -> None:
        self.reasons[reason] = None


def _above_one(dim: Dim) -> Dim:
    """A dim in terms of by how much sizes are above 1, so that formulas do not distinguish sizes of 0: `max(n, 1)` is
    `n` then."""
    return substitute(dim, lambda variable: total((variable, 1)))


def _from_one(dim: Dim) -> Dim:
    """The same in terms of the sizes again."""
    return substitute(dim, lambda variable: subtract(variable, 1))


def _rounds(count: Atom, numbers: Mapping[Var, Dim]) -> Dim | None:
    """The rounds of a loop, where they follow from the sizes."""
    if isinstance(count, Constant):
        return max(int(count.value), 0)
    found = numbers.get(count) if isinstance(count, Var) else None
    return None if found is None else maximum(found, 0)


_SIZE = 64
"""The number that a symbolic size counts as when arms of a branch are compared."""


def _weight(rows: Sequence[OperatorCost]) -> tuple[int, int]:
    def number(dim: Dim) -> int:
        return evaluate(dim, {v: _SIZE for v in variables(dim) if isinstance(v, TypeId)})

    return number(total(row.flops for row in rows)), number(total(row.bytes for row in rows))


def _row(operator: str, span: Span | None, cost: Cost) -> OperatorCost:
    if span is None or span.is_internal:
        return OperatorCost(operator, None, None, "", span is not None and span.in_backward, 1, cost.flops, cost.bytes)
    text = span.source.line(span.line).strip()
    return OperatorCost(operator, span.source.filename, span.line, text, span.in_backward, 1, cost.flops, cost.bytes)


def _merge_rows(rows: Sequence[OperatorCost]) -> Iterator[OperatorCost]:
    """One row for each operator and line, in the order of the first."""
    groups: dict[object, list[OperatorCost]] = {}
    for row in rows:
        groups.setdefault((row.operator, row.file, row.line, row.is_backward), []).append(row)
    yield from map(_sum, groups.values())


def _sum(rows: Sequence[OperatorCost]) -> OperatorCost:
    first, names = rows[0], dict.fromkeys(row.operator for row in rows)
    alike = len({(row.file, row.line) for row in rows}) == 1
    return OperatorCost(
        ", ".join(names),
        first.file if alike else None,
        first.line if alike else None,
        first.text if alike else "",
        all(row.is_backward for row in rows),
        total(row.calls for row in rows),
        total(row.flops for row in rows),
        total(row.bytes for row in rows),
    )


def _place(span: Span | None) -> str:
    return "" if span is None or span.is_internal else f"{span.source.filename.rsplit('/', 1)[-1]}:{span.line}: "
