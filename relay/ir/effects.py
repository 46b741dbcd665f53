"""Effects of a call: `io` (prints), `ref` (reads or writes outer references), `assert` (may fail), `rng` (draws random
numbers), `param` (has parameters). The last two have handlers.

A function's type holds the names of its effects; while a program is checked it holds `Effects`, which are known when
all that is called has been checked. Types that differ in them only are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span


@attrs.frozen
class Effect:
    """One thing that a program does: `what` is the verb, "prints". `reference`: the variable of the reference that
    is read or written, where it is known to be one that a function makes or takes."""

    kind: str
    what: str
    span: Span | None
    reference: Hashable = None


@attrs.define(eq=False)
class Effects:
    """The effects of a function: its own, and those of the functions that it calls, in the order of the text.

    A function parameter has the effects of its argument: a `variable` has a name, which stands for them in the types
    of functions. A `pure` function must have none.

    Effects on references that a call makes itself cannot be seen from outside: `own` holds their variables, and such
    effects do not count. A reference that is passed to a function is its parameter there; the
    call says which argument that is. One kind may be `handled`: others do not see it.
    """

    found: list[Effect | Effects | _Call] = attrs.field(factory=list)
    variable: str | None = None
    pure: bool = False
    own: set[Hashable] = attrs.field(factory=set)
    handled: str | None = None

    def include(self, other: Effects, arguments: Mapping[Hashable, Hashable] | None = None) -> None:
        """Add all effects of another function, also those that are found later. `arguments`: the arguments of the
        call, by parameter."""
        self.found.append(_Call(other, arguments) if arguments else other)

    def all_effects(self) -> list[Effect]:
        """Every effect once for each place."""
        return [part for part in self._parts() if isinstance(part, Effect)]

    def __iter__(self) -> Iterator[str]:
        """The names of the effects, and of variables that stand for others."""
        parts = self._parts()
        yield from sorted({part.kind for part in parts if isinstance(part, Effect)})
        yield from sorted({p.variable for p in parts if isinstance(p, Effects) and p.variable is not None})

    @property
    def is_decided(self) -> bool:
        """True if a name stands for the effects of arguments, or if arguments may not have any."""
        return any(isinstance(part, Effects) for part in self._parts())

    def names(self) -> EffectNames:
        """The effects as a finished type has them."""
        found = tuple(self)
        must_be_pure = any(isinstance(part, Effects) and part.pure for part in self._parts())
        return found if found or must_be_pure else None

    def _parts(self) -> list[Effect | Effects]:
        """The effects that others see, with the sets of functions that are parameters: a least fixed point, since
        functions may call each other."""
        sets = self.reachable_effects()
        users: dict[Effects, list[Effects]] = {}
        for one in sets:
            for part in one.found:
                if not isinstance(part, Effect):
                    users.setdefault(_part_effects(part), []).append(one)
        seen: dict[Effects, dict[Effect | Effects, None]] = {one: {} for one in sets}
        waiting = dict.fromkeys(reversed(sets))
        while waiting:
            one = next(iter(waiting))
            del waiting[one]
            found = one._seen_outside(seen)
            if len(found) > len(seen[one]):
                seen[one] = found
                waiting.update(dict.fromkeys(users.get(one, ())))
        return list(seen[self])

    def reachable_effects(self) -> list[Effects]:
        """This one, and those of all functions that are called, also by those."""
        order: dict[Effects, None] = {self: None}
        pending = [self]
        while pending:
            for part in pending.pop().found:
                if not isinstance(part, Effect) and _part_effects(part) not in order:
                    order[_part_effects(part)] = None
                    pending.append(_part_effects(part))
        return list(order)

    def _seen_outside(self, seen: Mapping[Effects, Mapping[Effect | Effects, None]]) -> dict[Effect | Effects, None]:
        found: dict[Effect | Effects, None] = {}
        if self.variable is not None or self.pure:
            found[self] = None
        for part in self.found:
            if isinstance(part, Effect):
                inner: Iterable[Effect | Effects] = (part,)
            else:
                inner = seen[_part_effects(part)]
            arguments = part.arguments if isinstance(part, _Call) else {}
            for one in inner:
                if isinstance(one, Effect) and one.kind == self.handled:
                    continue
                if isinstance(one, Effect) and one.reference is not None:
                    if one.reference in arguments:
                        one = attrs.evolve(one, reference=arguments[one.reference])
                    if one.reference in self.own:
                        continue
                found[one] = None
        return found


@attrs.frozen(eq=False)
class _Call:
    """The effects of a call: what the parameters of the called function are."""

    effects: Effects
    arguments: Mapping[Hashable, Hashable]


def _part_effects(part: Effects | _Call) -> Effects:
    return part.effects if isinstance(part, _Call) else part


@attrs.frozen
class Purity:
    """A demand on a function, `what`, to have no effects: where that is required, and what may be done. `only`: the
    things that it must not do. `call`: where it is passed."""

    what: str
    span: Span | None
    help: str
    only: Sequence[str] | None = None
    call: Span | None = None

    def first_violation(self, effects: Effects) -> Effect | None:
        """The first effect that there must not be."""
        return next((e for e in effects.all_effects() if self.only is None or e.what in self.only), None)


EffectNames: TypeAlias = Iterable[str] | None
"""The effects in a type: None where nothing is stated, `()` where there must be none."""


def show_effects(effects: EffectNames) -> str:
    """` ! {io, ref}`; nothing where there are none, but ` ! {}` where there must be none."""
    names = effects.names() if isinstance(effects, Effects) else effects
    return "" if names is None else f" ! {{{', '.join(names)}}}"
