"""Cost model: the work of one execution of a module.

A module's floating-point operations and the bytes that its operators write are counted for one call, from the
types: a loop with a constant count counts its rounds, any other loop one; a branch counts as its most expensive
arm; a call counts as its function, one that is recursive as nothing; a size that is not a number counts as `SIZE`.
`exact` says that none of these estimates was needed, `symbolic` that the last one was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from relay.errors import InternalError
from relay.ir.dims import ANY, Dim, TypeId, evaluate, variables
from relay.ir.expr import Block, Call, Constant, Function, Global, If, Loop, Match, Module, OpCall, Static
from relay.ir.types import TensorType, Type

SIZE = 64
"""The assumed value of a size that is not a number."""

OperatorWork: TypeAlias = Callable[[OpCall, Sequence[Type], Type], int]


def _no_operators(call: OpCall, types: Sequence[Type], result: Type) -> int:
    raise KeyError(call.operator)


_operator_work: OperatorWork = _no_operators


def use_work(operator_work: OperatorWork) -> None:
    """Say how many floating-point operations a call on operands of known shapes does. `relay.operator`, which lies
    above this package, does it when it is imported."""
    global _operator_work
    _operator_work = operator_work


@attrs.frozen
class Work:
    """The work of one call: floating-point operations, bytes written by operators, whether they are exact, and whether
    sizes that are not numbers are among them."""

    flops: int = 0
    bytes: int = 0
    exact: bool = True
    symbolic: bool = False

    def __add__(self, other: Work) -> Work:
        exact, symbolic = self.exact and other.exact, self.symbolic or other.symbolic
        return Work(self.flops + other.flops, self.bytes + other.bytes, exact, symbolic)

    def times(self, count: int) -> Work:
        """This many times this."""
        return Work(self.flops * count, self.bytes * count, self.exact, self.symbolic)

    def as_estimate(self) -> Work:
        """The same as an estimate."""
        return Work(self.flops, self.bytes, False, self.symbolic)


def work(module: Module) -> Work:
    """The work of a call of the entry. Linear in the module's size."""
    return Meter(module).function(module.entry)


class Meter:
    """Measures the blocks of one module. Functions are measured once. `size` is what sizes are taken to be that are no
    numbers."""

    def __init__(self, module: Module, size: int = SIZE) -> None:
        self.module = module
        self.size = size
        self.known: dict[str, Work | None] = {}  # None: being measured

    def function(self, name: str) -> Work:
        if name not in self.known:
            function = self.module.functions.get(name)
            self.known[name] = None
            self.known[name] = self.block(function.body) if isinstance(function, Function) else Work(exact=False)
        found = self.known[name]
        return Work(exact=False) if found is None else found

    def block(self, block: Block) -> Work:
        total = Work()
        for binding in block.bindings:
            match binding.value:
                case OpCall() as call:
                    total += self._operator(call, binding.targets[0].type)
                case Call(Global(name)):
                    total += self.function(name)
                case If() | Match() as branch:
                    total += self._branch(branch)
                case Loop(body=body, counter=counter):
                    round_ = self.block(body)
                    if counter is not None and isinstance(counter.count, Constant):
                        total += round_.times(max(0, int(counter.count.value)))
                    else:
                        total += round_.as_estimate()
                case Call():
                    total = total.as_estimate()
                case _:
                    pass
        return total

    def _operator(self, call: OpCall, result: Type | None) -> Work:
        types = [a.type for a in call.arguments if not isinstance(a, Static)]
        if result is None or None in types:
            raise InternalError("work is counted in typed modules")
        sized = [self._concrete_type(t) for t in types if t is not None]
        symbolic = _is_symbolic(result) or any(_is_symbolic(t) for t in types)
        made = self._concrete_type(result)
        return Work(_operator_work(call, sized, made), _bytes(made), not symbolic, symbolic)

    def _concrete_type(self, type_: Type) -> Type:
        """A type with numbers for sizes."""
        if not isinstance(type_, TensorType) or not _is_symbolic(type_):
            return type_
        return TensorType(type_.base, tuple(self._number(dim) for dim in type_.shape))

    def _number(self, dim: Dim) -> int:
        if dim is ANY:
            return self.size
        return max(0, evaluate(dim, {v: self.size for v in variables(dim) if isinstance(v, TypeId)}))

    def _branch(self, branch: If | Match) -> Work:
        conditions, arms = Work(), list[Work]()
        if isinstance(branch, If):
            for arm in branch.arms:
                conditions += self.block(arm.condition)
                arms.append(self.block(arm.body))
            arms.append(self.block(branch.orelse))
        else:
            arms += (self.block(arm.body) for arm in branch.arms)
        costliest = max(arms, key=lambda w: (w.flops, w.bytes), default=Work())
        alike = all((w.flops, w.bytes, w.exact) == (costliest.flops, costliest.bytes, True) for w in arms)
        return conditions + (costliest if alike else costliest.as_estimate())


def _is_symbolic(type_: Type | None) -> bool:
    """True if a tensor has a size that is not a number."""
    return isinstance(type_, TensorType) and not all(isinstance(dim, int) for dim in type_.shape)


def _bytes(type_: Type) -> int:
    """The bytes of a tensor whose sizes are numbers."""
    if not isinstance(type_, TensorType):
        return 0
    size = type_.dtype.itemsize
    for dim in type_.dims:
        size *= dim
    return size
