"""The rule by which bindings become a persistent kernel: one block computes them in less time than launches take.

    one block:  sum over the steps of  SYNCHRONIZATION + bytes / BYTES + operations / OPERATIONS
    launches:   LAUNCH for each kernel, DECISION for each branch that the GPU decides

Both in microseconds. One block has a hundredth of a GPU, which small tensors cannot use anyway; large ones take longer
in one block than all launches do. The body of a loop is compared as one round of it.
"""

from __future__ import annotations

import attrs

from relay.ir.dims import Dim
from relay.operator.cost import kernel_cost
from relay.transform.fusion.fusion_groups import FusionGroup

LAUNCH = 2.0
"""The least time of a kernel in a graph."""

DECISION = 4.0
"""The time of a conditional node of a graph, or less than that of a copy to the host."""

SYNCHRONIZATION = 0.1
"""The time until all threads of a block have what the others have computed, with the start of the next step."""

BYTES = 50_000
"""Bytes that a block reads in a microsecond: what it has in the first cache, or most of what the second one gives."""

OPERATIONS = 100_000
"""Operations of float32 that a block does in a microsecond, where it does not only these."""


@attrs.frozen
class Times:
    """Microseconds in one block, and in launches."""

    one_block: float = 0.0
    launches: float = 0.0

    def __add__(self, other: Times) -> Times:
        return Times(self.one_block + other.one_block, self.launches + other.launches)

    def scaled(self, count: float) -> Times:
        """The times of a loop of this many rounds."""
        return Times(self.one_block * count, self.launches * count)

    @property
    def is_persistent(self) -> bool:
        """True if one block takes less time."""
        return self.one_block < self.launches


def longer_times(first: Times, second: Times) -> Times:
    """Of two ways that a program may take, the one in which one block has more to do."""
    return first if first.one_block - first.launches >= second.one_block - second.launches else second


def group_times(group: FusionGroup, kernels: int) -> Times:
    """The times of a group of known sizes that is so many kernels."""

    def known_size(dim: Dim) -> Dim:
        assert isinstance(dim, int)
        return dim

    parts = kernel_cost(group.bindings, group.outputs, known_size)
    bytes_ = sum(part.bytes for part in parts if isinstance(part.bytes, int))
    operations = sum(part.weight for part in parts if isinstance(part.weight, int))
    own = kernels * SYNCHRONIZATION + bytes_ / BYTES + operations / OPERATIONS
    return Times(own, kernels * LAUNCH)


def branch_times() -> Times:
    """The times of a branch, without its arms."""
    return Times(SYNCHRONIZATION, DECISION)


__all__ = ["Times", "branch_times", "group_times", "longer_times"]
