"""Summaries: what a call of a function does to the objects that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from relay.typecheck.elaboration.aliasing.objects import NONE, Change, Generator, Object, Outside, Step
from relay.typecheck.elaboration.aliasing.places import Place
from relay.typecheck.elaboration.aliasing.walk import Walker


@attrs.frozen
class Reference:
    """An object by its way from a parameter, or from one that nobody passes."""

    parameter: int | Outside
    path: tuple[Step, ...] = ()


@attrs.frozen
class Containment:
    """An object of one argument that another one holds, in a field if that is known, through as many new objects as
    `depth` says."""

    into: Reference
    step: Step | None
    held: Reference
    depth: int = 0


@attrs.frozen(eq=False)
class Summary:
    """The effect of a function: which objects of its arguments change, which hold others then, and which its result
    is, or holds. `missed`: the parameters that it gives back without some change. `is_iterator`: the result may be
    a new iterator, of a `generator`. `reused`: the parameters that it goes through twice. `hides`: the result
    holds a new iterator. `failed`: the objects of its arguments that it may have changed when it fails."""

    changes: Sequence[tuple[Reference, Change]] = ()
    holds: Sequence[Containment] = ()
    result: Sequence[Reference] = ()
    inside: Sequence[Reference] = ()
    missed: Mapping[int, Change] = MappingProxyType({})
    is_iterator: bool = False
    may_fail: bool = False
    failed: Sequence[tuple[Reference, Change]] = ()
    generator: Generator | None = None
    reused: Mapping[int, Change] = MappingProxyType({})
    prints: bool = False
    hides: bool = False

    @property
    def content(self) -> object:
        """The content, which tells summaries apart whenever they were found."""
        ways = [frozenset(map(_way, rs)) for rs in ((r for r, _ in self.changes), self.result, self.inside)]
        holds = frozenset((_way(h.into), h.step and h.step.key, _way(h.held), h.depth) for h in self.holds)
        failed, reused = frozenset(_way(r) for r, _ in self.failed), frozenset(self.reused)
        flags = self.is_iterator, self.prints, self.may_fail
        return *ways, holds, frozenset(self.missed), reused, failed, flags


def _way(reference: Reference) -> object:
    return reference.parameter, tuple((s.key, s.variable) for s in reference.path)


def summary_of(walker: Walker, roots: dict[Object, int], result: Place | None) -> Summary:
    def reference(one: Object) -> Reference | None:
        start = one.root.outside or roots.get(one.root)
        return None if start is None else Reference(start, one.path)

    changed = [(one, change) for one, change in walker.state.changed.items() if one.root in roots]
    changes = [(found, change) for one, change in changed if (found := reference(one)) is not None]
    holds = []
    for root in roots:
        for holder in (root, *root.parts):
            into = reference(holder)
            if into is None:
                continue
            for step, there in holder.edges.items():
                at = step if isinstance(step.key, str) else None  # a field
                others = [o for o in there if o.parent is not holder]
                holds += [Containment(into, at, h) for h in map(reference, others) if h is not None]
                made = [o for o in others if reference(o) is None]
                holds += [Containment(into, at, h, depth) for h, depth in _references_inside(made, reference)]
    direct, inside = [], []
    gives_back = walker.definition.gives_back
    results = NONE if result is None else result.objects
    results = frozenset(walker.contents(results, Step(0))) if gives_back else results
    for one in results:
        found = reference(one)
        if found is not None:
            direct.append(found)
            continue
        inside += [found for found, _ in _references_inside([one], reference)]
    missed = {gives_back[i]: change for i, change in walker.stale.items()}
    is_iterator = any(o.is_iterator for o in results)
    before_errors = [(one, change) for one, change in walker.failed.items() if one.root in roots]
    failed = [(found, change) for one, change in before_errors if (found := reference(one)) is not None]
    generator = next((o.generator for o in results if o.generator is not None), None)
    reused = {roots[one]: change for one, change in walker.reused.items() if one in roots}
    hides = any(o.is_iterator for one in results for o in walker.state.contents(one))
    flags = walker.may_fail, failed, generator, reused, walker.prints, hides
    return Summary(changes, holds, direct, inside, missed, is_iterator, *flags)


def _references_inside(
    objects: list[Object], reference: Callable[[Object], Reference | None]
) -> list[tuple[Reference, int]]:
    """The parts of arguments that new objects hold, and through how many of these."""
    found, seen, waiting = list[tuple[Reference, int]](), set(objects), [(o, 1) for o in objects]
    while waiting:
        holder, depth = waiting.pop()
        for held in holder.edges.values():
            for one in set(held) - seen:
                seen.add(one)
                known = reference(one)
                if known is None:
                    waiting.append((one, depth + 1))
                else:
                    found.append((known, depth))
    return found
