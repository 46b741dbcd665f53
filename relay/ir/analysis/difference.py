"""Module differences: changed bindings, operator counts, and work per execution.

Bindings are paired by the identity of their variables, which passes keep; those of functions that were parsed or copied
are paired by name and order within the function of the same name.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping

import attrs

from relay.ir.analysis.metering import SIZE, Work, work
from relay.ir.expr import (
    Expr,
    Function,
    Module,
    OpCall,
    Var,
)
from relay.ir.traverse import walk
from relay.ir.types import show

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
    """The difference of one module from another. `str()` is a report; a difference without changes is false."""

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
        if self.before.symbolic or self.after.symbolic:
            lines.append(f"(symbolic sizes are taken as {SIZE})")
        return "\n".join(lines)


@attrs.frozen
class _Entry:
    function: str
    variable: str
    kind: str
    type: str


def diff(a: Module, b: Module) -> Difference:
    """The changes from module `a` to module `b`, both typed. Linear in their size."""
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
