"""What changed between two modules: bindings, operator counts, and the work of a run.

Bindings are paired by the identity of their variables, which passes keep; those of functions that were parsed or copied
are paired by name and order within the function of the same name.

*Work.* A module's floating-point operations and the bytes that its operators write are counted for one run, from the
types: a loop with a constant count counts its rounds, any other loop one; a branch counts as its dearest arm; a call
counts as its function, one that is recursive as nothing. `exact` says that neither of these estimates was needed and
all shapes are numbers.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import InternalError
from relay.ir.expr import (
    Block,
    Call,
    Constant,
    Expr,
    Function,
    Global,
    If,
    Loop,
    Match,
    Module,
    OpCall,
    Static,
    Var,
)
from relay.ir.traverse import walk
from relay.ir.types import TensorType, Type, show

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
    """The work of one run: floating-point operations, bytes written by operators, and whether they are exact."""

    flops: int = 0
    bytes: int = 0
    exact: bool = True

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes, self.exact and other.exact)

    def times(self, count: int) -> Work:
        """So many times this."""
        return Work(self.flops * count, self.bytes * count, self.exact)

    def estimated(self) -> Work:
        """The same as an estimate."""
        return Work(self.flops, self.bytes, False)


def work(module: Module) -> Work:
    """The work of a call of the entry. Linear in the module's size."""
    return _Meter(module).function(module.entry)


class _Meter:
    def __init__(self, module: Module) -> None:
        self.module = module
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
                        total += round_.estimated()
                case Call():
                    total = total.estimated()
                case _:
                    pass
        return total

    def _operator(self, call: OpCall, result: Type | None) -> Work:
        types = [a.type for a in call.arguments if not isinstance(a, Static)]
        try:
            if result is None or None in types:
                raise InternalError("work is counted in typed modules")
            size = _bytes(result)
            return Work(_operator_work(call, [t for t in types if t is not None], result), size)
        except TypeError:  # a dim that is no number
            return Work(exact=False)

    def _branch(self, branch: If | Match) -> Work:
        conditions, arms = Work(), list[Work]()
        if isinstance(branch, If):
            for arm in branch.arms:
                conditions += self.block(arm.condition)
                arms.append(self.block(arm.body))
            arms.append(self.block(branch.orelse))
        else:
            arms += (self.block(arm.body) for arm in branch.arms)
        dearest = max(arms, key=lambda w: (w.flops, w.bytes), default=Work())
        alike = all((w.flops, w.bytes, w.exact) == (dearest.flops, dearest.bytes, True) for w in arms)
        return conditions + (dearest if alike else dearest.estimated())


def _bytes(type_: Type) -> int:
    """The bytes of a tensor. Raises TypeError if a dim is no number."""
    if not isinstance(type_, TensorType):
        return 0
    size = type_.dtype.itemsize
    for dim in type_.dims:
        size *= dim
    return size


# ---- differences


@attrs.frozen
class Change:
    """A binding that is in one module only, or whose type or expression differs: the function, the variable, what it is
    bound to (an operator or a kind of expression), and its type, before and after (None: it is not there)."""

    function: str
    variable: str
    before: str | None
    after: str | None
    type_before: str | None
    type_after: str | None

    def __str__(self) -> str:
        place = f"{self.function}: %{self.variable}"
        if self.before is None:
            return f"+ {place}: {self.type_after} = {self.after}"
        if self.after is None:
            return f"- {place}: {self.type_before} = {self.before}"
        if self.type_before != self.type_after:
            return f"~ {place}: {self.type_before} -> {self.type_after}"
        return f"~ {place} = {self.before} -> {self.after}"


@attrs.frozen
class Difference:
    """What changed from one module to another. `str()` is a report; a difference without changes is false."""

    added: tuple[Change, ...]
    removed: tuple[Change, ...]
    retyped: tuple[Change, ...]
    replaced: tuple[Change, ...]  # bound to another operator or kind of expression, at the same type
    operators: Mapping[str, tuple[int, int]]  # those whose number of calls in the text differs: before and after
    before: Work
    after: Work

    def __bool__(self) -> bool:
        work_differs = self.before != self.after
        return bool(self.added or self.removed or self.retyped or self.replaced or self.operators) or work_differs

    def __str__(self) -> str:
        lines = [str(c) for c in (*self.removed, *self.added, *self.retyped, *self.replaced)]
        lines += (f"{name}: {a} -> {b} calls" for name, (a, b) in self.operators.items())
        about = "" if self.before.exact and self.after.exact else "about "
        lines.append(f"FLOPs: {about}{self.before.flops} -> {self.after.flops}")
        lines.append(f"bytes written: {about}{self.before.bytes} -> {self.after.bytes}")
        return "\n".join(lines)


@attrs.frozen
class _Entry:
    function: str
    variable: str
    kind: str
    type: str


def diff(a: Module, b: Module) -> Difference:
    """What changed from module `a` to module `b`, both typed. Linear in their size."""
    before, after = _entries(a), _entries(b)
    pairs = {v: (before[v], after[v]) for v in before.keys() & after.keys()}
    left = _by_name(e for v, e in before.items() if v not in pairs)
    right = _by_name(e for v, e in after.items() if v not in pairs)
    both = [*pairs.values(), *((left[k], right[k]) for k in left if k in right)]
    changes = [_change(x, y) for x, y in both]
    calls_before, calls_after = Tally(_calls(a)), Tally(_calls(b))
    return Difference(
        tuple(_change(None, e) for k, e in right.items() if k not in left),
        tuple(_change(e, None) for k, e in left.items() if k not in right),
        tuple(sorted((c for c in changes if c.type_before != c.type_after), key=str)),
        tuple(sorted((c for c in changes if c.type_before == c.type_after and c.before != c.after), key=str)),
        {
            name: (calls_before[name], calls_after[name])
            for name in sorted(calls_before.keys() | calls_after.keys())
            if calls_before[name] != calls_after[name]
        },
        work(a),
        work(b),
    )


def _entries(module: Module) -> dict[Var, _Entry]:
    return {
        target: _Entry(name, target.name, _kind(binding.value), "?" if target.type is None else show(target.type))
        for name, function in module.functions.items()
        if isinstance(function, Function)
        for binding in walk(function.body)
        for target in binding.targets
    }


def _kind(value: Expr) -> str:
    return value.operator if isinstance(value, OpCall) else type(value).__name__


def _by_name(entries: Iterator[_Entry]) -> dict[tuple[str, str, int], _Entry]:
    """Entries by function, variable and how many of the name there were before."""
    seen: Tally[tuple[str, str]] = Tally()
    found: dict[tuple[str, str, int], _Entry] = {}
    for entry in entries:
        key = (entry.function, entry.variable)
        found[(*key, seen[key])] = entry
        seen[key] += 1
    return found


def _change(before: _Entry | None, after: _Entry | None) -> Change:
    entry = after if before is None else before
    assert entry is not None
    return Change(
        entry.function,
        entry.variable,
        None if before is None else before.kind,
        None if after is None else after.kind,
        None if before is None else before.type,
        None if after is None else after.type,
    )


def _calls(module: Module) -> Iterator[str]:
    for function in module.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                if isinstance(binding.value, OpCall):
                    yield binding.value.operator
