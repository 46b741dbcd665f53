"""Generators: Python makes each element when it is asked for, and here all are made at once.

That is the same if all elements are taken, or if nothing shows when they were made. So

    what a generator reads must not change while it may go on;
    what it changes is not read before all elements are taken, in the block of its call;
    one that may fail or go on for long must not be left early, nor one that may fail be seen to stop;
    it must not print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from relay.errors import Span
from relay.ir.expr import Atom, Attempt, Expr, Global, OpCall, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, ForEach, Index, Unpack
from relay.ir.traverse import operands
from relay.ir.traverse import walk as bindings
from relay.typecheck.elaboration.abstract_values import PythonObject
from relay.typecheck.elaboration.aliasing import calls, methods
from relay.typecheck.elaboration.aliasing.objects import NONE, Change, Generator, Object, Objects
from relay.typecheck.elaboration.aliasing.summaries import Summary
from relay.typecheck.elaboration.aliasing.walk import Walker, leaves

_KEEPING = ("list", "append", "extend", "given_back", "set_field", "assigned", "growing", "each", "generated")
"""The intrinsics that keep what they are given as it is."""

_TAKING = (list, tuple, sorted, sum, max, min, set, frozenset, dict)
"""The functions that take all elements."""

_GOING_THROUGH = (enumerate, zip, map, filter, iter)
"""The functions whose results take elements when they are asked for some."""


def check_call(walker: Walker, name: str, summary: Summary, given: Mapping[int, Atom], span: Span | None) -> None:
    """A call must not go twice through an iterator, or give one in something else, and no generator prints."""
    for parameter, change in summary.reused.items():
        atom = given.get(parameter)
        if atom is not None and any(o.is_iterator for o in walker.objects(atom)):
            note = Change(walker.tick(), span, walker.written_name(atom), is_use=True, within=change)
            walker.mistake(walker.written_name(atom), span, note)
    walker.prints |= summary.prints
    if summary.hides:
        walker.mistake(name, span, Change(walker.tick(), span, ""), "hidden")
    if summary.generator is not None and summary.prints:
        walker.mistake(summary.generator.name, span, Change(walker.tick(), span, ""), "prints")


def make(
    walker: Walker, made: Object, generator: Generator | None, late: Change | None, given: Iterable[Objects]
) -> None:
    """Let an object be the iterator that a call gives."""
    made.is_iterator = True
    for objects in given:
        made.go_through(objects)
    if generator is not None:
        made.generator = attrs.evolve(generator, change=late, block=walker.block_number)


def make_local(
    walker: Walker, objects: Objects, name: str, around: Sequence[Objects], began: int, span: Span | None
) -> None:
    """Let the result of a local function be what a call gives, if it is a generator, which must change nothing."""
    for made in objects:
        if made.generator is None or made.generator.block:
            continue
        make(walker, made, attrs.evolve(made.generator, name=name), None, around)
        for one in around:
            change = walker.state.missed(one, began)
            for content in (walker.state.cells[o] for o in one if o in walker.state.cells):
                change = Change(content.time, span, content.name) if content.time > began else change
            if change is not None:
                walker.mistake(change.name, span, attrs.evolve(change, is_late=True))


def begin(walker: Walker, loop: ForEach) -> None:
    """A loop begins to go through something."""
    walker.read(loop.iterable, loop.span)
    _of_object(walker, loop)
    place = walker.iterated.get(loop.label) or walker.place(loop.iterable)
    walker.use_iterator(loop.iterable, loop.span)
    if loop.label.name in ("map", "filter"):
        return
    for made in _generators(NONE if place is None else place.objects):
        if made.risk is not None and (leaves(loop) or (_may_fail(made) and _catches(walker))):
            _left(walker, made, loop.span)


def _of_object(walker: Walker, loop: ForEach) -> None:
    """An object is gone through by what its `__iter__` gives."""
    method = methods.user_method(walker, loop.iterable, "__iter__")
    if method is not None:
        own = Var("iterator")
        calls.call_method(walker, own, loop.iterable, method, Apply(loop.iterable, (), (), loop.span))
        if own in walker.places:
            walker.iterated[loop.label] = walker.places[own]


def _may_fail(made: Generator) -> bool:
    return made.risk is not None and made.risk.startswith("line")


def _catches(walker: Walker) -> bool:
    """True if an error may be caught in this function, which sees then how far a loop has come."""
    return any(isinstance(b.value, Attempt) for b in bindings(walker.definition.function.body))


def use(walker: Walker, targets: tuple[Var, ...], value: Expr) -> None:
    """An expression uses up the iterators among its operands, unless it only keeps them."""
    match value:
        case Apply(Static(Intrinsic(name))) if name in _KEEPING:
            return
        case Apply(Static(Intrinsic("__next__")), (atom, *_)):
            _may_be_left(walker, value)
            objects = walker.objects(atom)
            if objects and not any(o.is_iterator or o.given for o in objects):
                walker.mistake(walker.written_name(atom), value.span, Change(walker.tick(), value.span, ""), "list")
        case Apply(Static(Intrinsic("spread"))) | Unpack():
            _take_all(walker, value)
        case Apply():
            _call(walker, value)
        case Index(whole) if (objects := walker.objects(whole)) and all(o.is_iterator for o in objects):
            walker.mistake(walker.written_name(whole), value.span, Change(walker.tick(), value.span, ""), "items")
        case Index() | OpCall():
            for atom in operands(value):
                walker.use_iterator(atom, value.span)


def _call(walker: Walker, value: Apply) -> None:
    found = _function(walker, value.function)
    if found is len:
        return
    if any(found is one for one in _TAKING) or _is_join(walker, value.function):
        _take_all(walker, value)
        return
    if not any(found is one for one in _GOING_THROUGH) or (found is zip and len(value.arguments) > 1):
        _may_be_left(walker, value)
    for atom in operands(value):
        if any(o.is_iterator for o in walker.objects(atom)):
            walker.read(atom, value.span)  # which another operand may be, too
        if found is not iter or not any(o.is_iterator for o in walker.objects(atom)):
            walker.use_iterator(atom, value.span)


def _function(walker: Walker, atom: Atom) -> object:
    """The Python function that is called, as far as it is known."""
    if isinstance(atom, Global):
        return walker.definition.scope.resolve(atom.name)
    meaning = walker.meanings.value(atom) if isinstance(atom, Var) else None
    return meaning.value if isinstance(meaning, PythonObject) else None


def _is_join(walker: Walker, function: Atom) -> bool:
    value = walker.values.get(function) if isinstance(function, Var) else None
    return isinstance(value, Attribute) and value.name == "join"


def _take_all(walker: Walker, value: Expr) -> None:
    for atom in operands(value):
        walker.use_iterator(atom, value.span)
        walker.finish(walker.objects(atom))


def _may_be_left(walker: Walker, value: Apply) -> None:
    """A call may leave the generators that it is given."""
    for atom in operands(value):
        for made in _generators(walker.objects(atom)):
            if made.risk is not None:
                _left(walker, made, value.span)


def _left(walker: Walker, made: Generator, span: Span | None) -> None:
    walker.mistake(made.name, span, Change(walker.tick(), span, str(made.risk)), "left")


def _generators(objects: Objects) -> list[Generator]:
    return [one.generator for one in objects if one.generator is not None]
