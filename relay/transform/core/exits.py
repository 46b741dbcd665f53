"""Reified exits: a branch or loop yields as data the exit that it takes, and a match afterwards takes it.

d = branch yielding `Way`; match d { Done(targets) -> what follows, Exit1(values) -> exit, Next2(values) -> next, .. }
"""

from __future__ import annotations

from typing import TypeAlias

from relay.errors import InternalError, Span
from relay.ir.analysis.tail_positions import Leaf, leaves, replace_leaves, with_yields
from relay.ir.expr import (
    Binding,
    Block,
    Construct,
    Dead,
    Exit,
    Function,
    Loop,
    LoopLabel,
    Match,
    MatchArm,
    Next,
    Terminator,
    Var,
)
from relay.ir.rebuild import map_branch
from relay.ir.traverse import Branch
from relay.ir.types import Constructor, DataDefinition, DataType, Type

DONE = "Done"

Way: TypeAlias = tuple[bool, LoopLabel]
"""True for a Next; and its target."""


def way_of(leaf: Leaf) -> Way:
    """The way that a leaf goes."""
    return (isinstance(leaf, Next), leaf.label)


def variable_types(variables: tuple[Var, ...]) -> tuple[Type, ...]:
    """The types of variables. Raises InternalError if one has none."""
    types = tuple(v.type for v in variables if v.type is not None)
    if len(types) != len(variables):
        raise InternalError("a variable without a type")
    return types


class ReifiedExits:
    """The ways of one function, and the data types for them, which are added to `data` under names not in `names`."""

    def __init__(self, function: Function, names: set[str], data: list[DataDefinition]) -> None:
        if function.result is None:
            raise InternalError(f"{function.name} has no result type")
        self.function = function
        self.names = names
        self.data = data
        self.types: dict[Way, tuple[Type, ...]] = {(False, function.label): (function.result,)}

    def define(self, found: dict[Way, tuple[Type, ...]]) -> tuple[DataDefinition, dict[Way, str]]:
        """A data type with a constructor for each way."""
        base = name = f"{self.function.name}_way"
        number = 0
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        constructors: dict[Way, str] = {}
        for way in found:
            text = DONE if not constructors else f"{'Next' if way[0] else 'Exit'}{len(constructors)}"
            constructors[way] = text
        definition = DataDefinition(name, tuple(Constructor(constructors[w], types) for w, types in found.items()))
        self.data.append(definition)
        return definition, constructors

    def branch_exits(
        self, branch: Branch | Block, join: LoopLabel, own: tuple[Type, ...]
    ) -> dict[Way, tuple[Type, ...]]:
        """The exits of a branch with the types of what they pass on; the own one is first."""
        found = {(False, join): own}
        for leaf in leaves(branch):
            if way_of(leaf) not in found:
                found[way_of(leaf)] = self.types[way_of(leaf)]
        return found

    def gather(self, branch: Branch, join: LoopLabel, targets: tuple[Var, ...]) -> tuple[list[Binding], Branch]:
        """Let a branch yield the way that it goes, and go it afterwards. The targets become fields of `Done`."""
        found = self.branch_exits(branch, join, variable_types(targets))
        definition, constructors = self.define(found)
        way = Var("way", DataType(definition))

        def construct(leaf: Leaf) -> Block:
            value = Var("way", way.type)
            made = Construct(definition, constructors[way_of(leaf)], leaf.values, leaf.span)
            return Block((Binding((value,), made),), Exit(join, (value,), leaf.span))

        chosen = map_branch(branch, lambda b: replace_leaves(b, construct))
        before = [Binding((way,), with_yields(chosen, join, (way,)))]
        return before, self.match(way, found, constructors, join, targets, branch.span)

    def match(
        self,
        way: Var,
        found: dict[Way, tuple[Type, ...]],
        constructors: dict[Way, str],
        join: LoopLabel,
        targets: tuple[Var, ...],
        span: Span | None,
    ) -> Match:
        arms: list[MatchArm] = []
        for (again, label), types in found.items():
            constructor = constructors[again, label]
            if not arms:
                arms.append(MatchArm(constructor, targets, Block((), Exit(join, ()))))
                continue
            fields = tuple(Var("value", t) for t in types)
            arms.append(MatchArm(constructor, fields, Block((), Next(label, fields) if again else Exit(label, fields))))
        return Match(way, tuple(arms), span)

    def loop(
        self, loop: Loop, body: Block, targets: tuple[Var, ...], join: LoopLabel, out: list[Binding]
    ) -> Branch | Terminator | None:
        """Append the loop, with this body in tail form, so that no exit crosses it, to `out`.

        Returns the branch or terminator that follows it, if any.
        """
        foreign = {way_of(leaf): None for leaf in leaves(body) if leaf.label is not loop.label}
        own = any(isinstance(leaf, Exit) and leaf.label is loop.label for leaf in leaves(body))
        if not foreign:
            out.append(Binding(targets, Loop(loop.label, loop.parameters, loop.initial, body, loop.counter, loop.span)))
            return None if own or loop.counter is not None else Dead()
        if loop.counter is not None:
            return self.reify_counted_loop(loop, body, targets, join, out)
        if not own and len(foreign) == 1:
            ((again, label),) = foreign
            results = tuple(Var("value", t) for t in self.types[again, label])

            def leave(leaf: Leaf) -> Block:
                return Block((), leaf if leaf.label is loop.label else Exit(loop.label, leaf.values, leaf.span))

            made = Loop(loop.label, loop.parameters, loop.initial, replace_leaves(body, leave), None, loop.span)
            out.append(Binding(results, made))
            return Next(label, results) if again else Exit(label, results)
        found = {(False, join): variable_types(targets)} | {way: self.types[way] for way in foreign}
        definition, constructors = self.define(found)
        way = Var("way", DataType(definition))

        def construct(leaf: Leaf) -> Block:
            if isinstance(leaf, Next) and leaf.label is loop.label:
                return Block((), leaf)
            value = Var("way", way.type)
            name = constructors[(False, join) if leaf.label is loop.label else way_of(leaf)]
            binding = Binding((value,), Construct(definition, name, leaf.values, leaf.span))
            return Block((binding,), Exit(loop.label, (value,), leaf.span))

        made = Loop(loop.label, loop.parameters, loop.initial, replace_leaves(body, construct), None, loop.span)
        out.append(Binding((way,), made))
        return self.match(way, found, constructors, join, targets, loop.span)

    def reify_counted_loop(
        self, loop: Loop, body: Block, targets: tuple[Var, ...], join: LoopLabel, out: list[Binding]
    ) -> Branch:
        """A counted loop results in its parameters, so it carries the way that it goes as one more of them."""
        found: dict[Way, tuple[Type, ...]] = {(False, join): ()}
        for leaf in leaves(body):
            if leaf.label is not loop.label:
                found[way_of(leaf)] = self.types[way_of(leaf)]
        definition, constructors = self.define(found)
        start, carried, way = (Var("way", DataType(definition)) for _ in range(3))
        out.append(Binding((start,), Construct(definition, DONE, (), loop.span)))

        def construct(leaf: Leaf) -> Block:
            if leaf.label is loop.label:
                values = (*leaf.values, carried)
                again = isinstance(leaf, Next)
                return Block((), Next(leaf.label, values, leaf.span) if again else Exit(leaf.label, values, leaf.span))
            value = Var("way", carried.type)
            binding = Binding((value,), Construct(definition, constructors[way_of(leaf)], leaf.values, leaf.span))
            return Block((binding,), Exit(loop.label, (*loop.parameters, value), leaf.span))

        made = Loop(
            loop.label,
            (*loop.parameters, carried),
            (*loop.initial, start),
            replace_leaves(body, construct),
            loop.counter,
            loop.span,
        )
        if len(targets) != len(loop.parameters):
            targets = tuple(Var("unused", p.type) for p in loop.parameters)
        out.append(Binding((*targets, way), made))
        return self.match(way, found, constructors, join, (), loop.span)
