"""Launches: what a program starts on a GPU, without the code of its kernels. Nothing here needs TVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.codegen.cuda.libraries.convolutions import LibraryConvolution
from relay.codegen.cuda.libraries.products import LibraryProduct
from relay.errors import Span
from relay.ir.dims import Dim, DimExpr, Kind, TypeId, product
from relay.ir.expr import Atom, Constant, OpCall, Var
from relay.ir.types import TensorType
from relay.operator import IndexKind, lookup
from relay.transform.fusion.fusion_groups import FusionGroup

GENERAL = tuple(TypeId(f"d{number}", Kind.Dim) for number in range(100))
"""The symbolic dims of kernels, which groups with other dims share: the first of a group's dims, the second, .."""


@attrs.frozen(eq=False)
class Launch:
    """A kernel, and what it is started with: its name, the positions of its pointers among a group's operands, results
    and temporaries, in this order, how many of the group's sizes follow them, and how many blocks of how many threads
    there are. `rule`, `subject` and `reason`: the schedule rule that made it. `function` is its TIR, where it has just
    been made."""

    name: str
    buffers: tuple[int, ...]
    sizes: int
    blocks: Dim
    threads: int
    rule: str
    subject: str
    reason: str
    function: Any = None


@attrs.frozen(eq=False)
class Rest:
    """The kernels of a group that follow what a library computes of it: the result that they read."""

    result: Var
    kernels: GroupKernels


@attrs.frozen(eq=False)
class GroupKernels:
    """The launches that compute a group, one after another. `temporaries`: the bytes of buffers between them, and
    `sizes`: the dims that the kernels know as GENERAL, in this order. `calls`: the operators, and what they make, if
    the host may compute them where it has all operands. `lines`: where the program has the operators. `library`: what a
    library may compute in place of the launches, or why none does; `copies`: the kernels that copy the factors, the
    addend and the result to and from its layout, each where it is needed, and `rest` what it leaves. `updated`: the
    variable whose elements the last result has, but for those that the launches write: they find it there, and it is no
    operand. `is_view`: the result is the operand in another shape, and shares its memory."""

    operands: tuple[Atom, ...]
    outputs: tuple[Var, ...]
    results: tuple[TensorType, ...]
    sizes: tuple[TypeId, ...]
    temporaries: tuple[Dim, ...]
    launches: tuple[Launch, ...]
    calls: tuple[tuple[Var, OpCall], ...] | None = None
    lines: tuple[Span, ...] = ()
    library: LibraryProduct | LibraryConvolution | str | None = None
    copies: tuple[GroupKernels | None, ...] = ()
    rest: Rest | None = None
    updated: Var | None = None
    is_view: bool = False

    @property
    def read(self) -> tuple[Var, ...]:
        """The variables that it reads."""
        found = (*self.operands, self.updated)
        return tuple(atom for atom in found if isinstance(atom, Var))

    @property
    def all_launches(self) -> list[Launch]:
        """Its kernels, and those beside a library."""
        others = [*self.copies, None if self.rest is None else self.rest.kernels]
        return [*self.launches, *(launch for other in others if other is not None for launch in other.launches)]


@attrs.frozen(eq=False)
class Region:
    """Bindings of a block that one kernel computes, up to before `end`."""

    end: int
    kernels: GroupKernels


@attrs.frozen(eq=False)
class HostBlock:
    """A block as the host runs it: its groups by the positions of bindings where they run, the variables that are
    read for the last time at each binding, and those that its terminator reads last. `carried`: for loops among the
    bindings, by position, the initial values that only the loop's parameters have from then on. `regions`: by their
    first bindings, what runs in place of these."""

    groups: Mapping[int, GroupKernels]
    last: Sequence[tuple[Var, ...]]
    ending: tuple[Var, ...]
    carried: Mapping[int, tuple[Var, ...]]
    regions: Mapping[int, Region] = {}

    @property
    def launched(self) -> list[GroupKernels]:
        """All that the host starts: regions, and the groups that are in none."""
        inside = {at for start, region in self.regions.items() for at in range(start, region.end)}
        own = [group for at, group in self.groups.items() if at not in inside]
        return [*own, *(region.kernels for region in self.regions.values())]


SMALL = 16
"""Elements of a tensor that the host computes, at most."""


def is_view(group: FusionGroup, operands: Sequence[Atom]) -> bool:
    """True if a group gives its only operand another shape, and does nothing else."""
    call = group.bindings[0].value
    assert isinstance(call, OpCall)
    kind = lookup(call.operator).indexing.kind
    return len(group.bindings) == len(operands) == len(call.arguments) == 1 and kind is IndexKind.RESHAPE


def updated_variable(group: FusionGroup) -> Var | None:
    """The variable that the last call of a group may write over; None if there is none. Others of its calls may read it
    if the last one's result is the only one: then they are all computed before, and kept in memory."""
    calls = [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]
    inner = {binding.targets[0] for binding in group.bindings}
    *before, last = calls
    update = lookup(last.operator).memory.in_place
    if update is None or group.bindings[-1].targets[0] not in group.outputs:
        return None
    changed = last.arguments[update.operand]
    if not isinstance(changed, Var) or changed in inner or last.arguments.count(changed) > 1:
        return None
    is_read = any(changed in call.arguments for call in before)
    return changed if len(group.outputs) == 1 or not is_read else None


def host_calls(group: FusionGroup) -> tuple[tuple[Var, OpCall], ...] | None:
    """The calls of a group of few integers and bools; None for any other. Of these the host computes the same bits."""
    found = []
    for binding in group.bindings:
        call, (target,) = binding.value, binding.targets
        assert isinstance(call, OpCall)
        if not all(map(_is_small, (*call.arguments, target))) or any(map(_is_symbolic, call.attributes.values())):
            return None
        found.append((target, call))
    return tuple(found)


def _is_small(atom: Atom) -> bool:
    """True if a value has few elements, of an integer dtype."""
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    if not isinstance(type_, TensorType) or type_.dtype.kind not in "iub":
        return False
    count = product(type_.shape)
    return isinstance(count, int) and count <= SMALL


def _is_symbolic(attribute: object) -> bool:
    """True if an attribute mentions a symbolic size."""
    if isinstance(attribute, tuple):
        return any(map(_is_symbolic, attribute))
    return isinstance(attribute, TypeId | DimExpr)
