"""Fusion groups: the operator calls of a block that run together as one kernel.

A plan is a pure function of a block. Code generation consumes it; nothing is rewritten. A group is a set of operator
calls of one block, with one result or several. First groups of one result are made (`producer_consumer`), from the last
call to the first: a call joins the group of its consumers when all of its uses lie in that one group, and

    elementwise, broadcast, injective   -> any of these, or a reduction's input, or beside the main path of an epilogue
    reduction, output-fusable (matmul)  -> elementwise calls of the same shape (the epilogue)
    opaque                              -> nothing

Such a group has at most one reduction or matmul (its anchor). A matmul's own inputs stay materialized, because it reads
each element often; but a transposed one is read in place. For the same reason arithmetic does not move into a consumer
with more elements than it has itself; pure data movement does. Calls without operands (`zeros`) are repeated in each
group that uses them, and so are cheap calls that several groups read. A group's expression, written out as a tree, has
at most `LIMIT` calls: TVM's expressions are trees, and deep ones break it.

Then groups become one that go over the same elements and read the same (`multi_output`), or that are computed row by
row, as the parts of a softmax or a layer norm (`rows`). A result of one of them that only this group reads is kept in a
register, or in memory for one row.

A group runs at the place of its last member, or earlier if nothing between may fail: a call stays after the `Assert`
that guards it. A call that can update an operand in place ends its group, and that operand is in memory. Calls that the
others are computed from may join, since they are completed before anything is written. A read of an array that is
updated does not move after the update.
"""

from __future__ import annotations

import attrs

from relay.ir.expr import Binding, Block, Var
from relay.transform.fusion.fusion_calls import BlockCalls, in_place_operands
from relay.transform.fusion.multi_output import merge_groups
from relay.transform.fusion.producer_consumer import LIMIT, drafts

__all__ = ["LIMIT", "FusionGroup", "in_place_operands", "plan"]


@attrs.frozen(eq=False)
class FusionGroup:
    """Calls that run as one kernel, in the order of the block, and those of their targets that others read. Those in
    `kept` are computed once for each place, before others read them."""

    bindings: tuple[Binding, ...]
    outputs: tuple[Var, ...]
    kept: tuple[Var, ...] = ()


def plan(block: Block) -> dict[int, FusionGroup]:
    """The groups of a block's operator calls, each under the position of the binding where it runs. Takes time in
    proportion to the bindings."""
    calls = BlockCalls(block)
    groups: dict[int, FusionGroup] = {}
    for draft in merge_groups(calls, drafts(calls)):
        outputs, kept = (tuple(map(calls.target, sorted(part))) for part in (draft.results, draft.kept))
        groups[draft.place] = FusionGroup(calls.bindings(draft.members), outputs, kept)
    return groups
