"""Calls: constructors and containers, functions of Python and NumPy that give what they are given, and functions of the
program, with what they change in their arguments."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from relay.ir.definition import Definition, data_class, given_back
from relay.ir.expr import Atom, Function, Global, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.partial_calls import PartialCall
from relay.ir.structure import is_plain_class, is_record_class
from relay.ir.surface import Apply, Attribute, Index
from relay.ir.types import Form
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    PythonObject,
    Tuple,
)
from relay.typecheck.elaboration.aliasing import effects, methods, views
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import NONE, Change, Object, Objects, Step
from relay.typecheck.elaboration.aliasing.places import Place, Slot, Source
from relay.typecheck.elaboration.aliasing.walk import Walker
from relay.typecheck.elaboration.values.bound_methods import changing_function, method_function

SHIFTING = ("insert", "remove", "reverse", "sort", "clear", "update")
"""The methods after which an index of a list means another item."""

COPIES = (list, tuple, dict, sorted, reversed, copy.copy, dataclasses.replace)


@attrs.frozen
class Reference:
    """An object by its way from a parameter."""

    parameter: int
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
    is, or holds. `missed`: the parameters that it gives back without some change."""

    changes: Sequence[tuple[Reference, Change]] = ()
    holds: Sequence[Containment] = ()
    result: Sequence[Reference] = ()
    inside: Sequence[Reference] = ()
    missed: Mapping[int, Change] = MappingProxyType({})

    @property
    def content(self) -> object:
        """The content, which tells summaries apart whenever they were found."""
        ways = [frozenset(map(_way, rs)) for rs in ((r for r, _ in self.changes), self.result, self.inside)]
        holds = frozenset((_way(h.into), h.step and h.step.key, _way(h.held), h.depth) for h in self.holds)
        return *ways, holds, frozenset(self.missed)


def _way(reference: Reference) -> object:
    return reference.parameter, tuple((s.key, s.variable) for s in reference.path)


def elements(walker: Walker, atom: Atom) -> Objects:
    """The objects that a container holds."""
    return walker.contents(walker.objects(atom), walker.any_step())


def make_container(walker: Walker, target: Var, items: Sequence[Atom], names: Sequence[object] = ()) -> None:
    """A new list, tuple or record of these items."""
    made = Object()
    for position, item in enumerate(items):
        key = names[position] if position < len(names) else position
        made.hold(Step(key), walker.objects(item))
    walker.bind(target, frozenset({made}))


def copy_container(walker: Walker, target: Var, objects: Objects) -> None:
    """A new container of the same elements."""
    made = Object()
    for one in objects:
        for step, held in one.edges.items():
            for item, count in held.items():
                if item.parent is not one:
                    made.hold(step, {item}, count)
        if one.given:
            made.hold(walker.any_step(), {one.part(walker.any_step())})
    walker.bind(target, frozenset({made}))


def define(walker: Walker, function: Function) -> None:
    """A local function is made: it may be called by anyone with anything."""
    if function.label in walker.active:
        return
    before = walker.state.copy()
    for parameter in function.parameters:
        walker.bind_new(parameter)
    walker.run(function)
    walker.state = before


def call(walker: Walker, targets: tuple[Var, ...], value: Apply) -> None:
    """A call of anything."""
    target = targets[0] if targets else Var("nothing")
    if value.changed:
        _call_changing(walker, target, value)
        return
    match value.function:
        case Static(Intrinsic(name)):
            _intrinsic(walker, target, name, value)
        case Static(meaning):
            _call_object(walker, target, meaning, value)
        case Global(name):
            found = walker.definition.scope.resolve(name)
            _call_object(walker, target, found, value)
        case Var() as function:
            _call_variable(walker, target, function, value)


def _call_variable(walker: Walker, target: Var, function: Var, value: Apply) -> None:
    meaning = walker.meanings.value(function)
    if target in walker.definition.updated:  # np.add.at, and other updates that are calls of methods
        base: Atom = function
        while isinstance(base, Var) and isinstance(part := walker.values.get(base), Index | Attribute):
            base = part.value
        walker.bind(target, effects.change(walker, base, value.span))
        return
    match meaning:
        case LocalFunction(inner) if inner.label in walker.defined:
            _call_local(walker, target, inner, value)
        case GlobalFunction(definition):
            _call_object(walker, target, definition, value)
        case Method():
            call_method(walker, target, _receiver(walker, function), meaning, value)
        case PythonObject(found):
            _call_object(walker, target, found, value)
        case Tuple((GlobalFunction(definition), Tuple(given), _), Form(cls)) if cls is PartialCall:
            call_definition(walker, target, definition, (*[Static(None)] * len(given), *value.arguments), value)
        case Tuple() | DynamicValue() if (own := method_function(Method(meaning, "__call__"))) is not None:
            call_definition(walker, target, own.definition, (function, *value.arguments), value)
        case _:
            walker.bind_new(target)


def _call_changing(walker: Walker, target: Var, value: Apply) -> None:
    """A call that gives back arguments."""
    callee = walker.meanings.value(value.function) if isinstance(value.function, Var) else None
    if isinstance(value.function, Global):
        callee = _global_function(walker, value.function.name)
    call_changing(walker, target, callee, _receiver(walker, value.function), value)


def _receiver(walker: Walker, function: Atom) -> Atom:
    """The value of a method that is called."""
    match walker.values.get(function) if isinstance(function, Var) else None:
        case Attribute(value) | Apply(Static(Intrinsic("inherited")), (value, *_)):
            return value
        case _:
            return function


def call_changing(walker: Walker, target: Var, callee: AbstractValue | None, receiver: Atom, value: Apply) -> None:
    """A call of a function that gives back arguments: they are the objects that they were, as they are now."""
    found = None if callee is None else changing_function(callee)
    result, missed = Var("result"), dict[int, Change]()
    given = [*value.arguments, *(a for _, a in value.keywords), receiver]
    if found is not None:
        definition, is_method = found
        arguments = (receiver, *value.arguments) if is_method else value.arguments
        call_definition(walker, result, definition, arguments, value)
        places = _by_parameter(definition.function, arguments, value.keywords)
        stale = {places[p]: c for p, c in walker.summarize(definition).missed.items() if p in places}
        missed = {i: stale[a] for i, a in enumerate(given) if a in stale}
    elif isinstance(callee, Method):
        call_method(walker, result, receiver, callee, value)
    else:
        call(walker, (result,), attrs.evolve(value, changed=()))  # type: ignore[misc]
    pair, parts = Object(), list[tuple[Slot | None, Change | None]]([(None, None)])
    pair.hold(Step(0), walker.objects(result))
    for position, index in enumerate(value.changed, start=1):
        atom = given[index]
        pair.hold(Step(position), walker.objects(atom))
        place = walker.place(atom)
        parts.append((None if place is None else place.slot, missed.get(index % len(given))))
    walker.popped[target] = parts
    walker.places[target] = Place(frozenset({pair}), walker.tick())


def _global_function(walker: Walker, name: str) -> AbstractValue | None:
    """The function of the program that a global name means."""
    found = walker.definition.scope.resolve(name)
    definition = found if isinstance(found, Definition) else getattr(found, "__relay__", None)
    definition = definition if isinstance(definition, Definition) else walker.undecorated(found)
    return None if definition is None else GlobalFunction(definition)


def _call_local(walker: Walker, target: Var, function: Function, value: Apply) -> None:
    if function.label in walker.active:
        walker.bind_new(target)
        return
    given = _by_parameter(function, value.arguments, value.keywords)
    for position, parameter in enumerate(function.parameters):
        place = walker.place(given[position]) if position in given else None
        if place is None:
            walker.bind_new(parameter)
        else:
            walker.bind(parameter, place.objects, place.slot)
    handed = walker.run(function)
    if handed is None:
        walker.bind_new(target)
    else:
        walker.bind(target, handed.objects, None, handed.missed)
        back = [walker.place(given[p]) if p in given else None for p in given_back(function)]
        if back:
            slots = [None if place is None else place.slot for place in back]
            walker.popped[target] = [(None, None), *((slot, None) for slot in slots)]


def _by_parameter(
    function: Function, arguments: Sequence[Atom], keywords: Sequence[tuple[str, Atom]]
) -> Mapping[int, Atom]:
    names = {p.name: i for i, p in enumerate(function.parameters)}
    found = dict(enumerate(arguments[: len(function.parameters)]))
    return found | {names[name]: atom for name, atom in keywords if name in names}


def call_definition(
    walker: Walker, target: Var, definition: Definition, arguments: Sequence[Atom], value: Apply
) -> None:
    """A call of a function of the program, with these arguments by position."""
    function = definition.function
    summary = walker.summarize(definition)
    given = _by_parameter(function, arguments, value.keywords)

    def objects(reference: Reference) -> Objects:
        found = walker.objects(given[reference.parameter]) if reference.parameter in given else NONE
        for step in reference.path:
            found = walker.contents(found, step if step.key is not None else walker.any_step())
        return found

    for parameter in dict.fromkeys(reference.parameter for reference, _ in summary.changes):
        now, atom = walker.tick(), given.get(parameter)
        name = "it" if atom is None else walker.written_name(atom)
        around = () if atom is None else effects.steps_to(walker, atom)
        is_record = isinstance(atom, Var) and walker.kind(atom) is Kind.RECORD
        for reference, inner in summary.changes:
            steps = (*reversed(reference.path), *around)
            note = Change(now, value.span, name, steps, is_sum=inner.is_sum, is_of_record=is_record, within=inner)
            for one in objects(reference) if reference.parameter == parameter else NONE:
                walker.state.change(one, note)
                if one.root.name:
                    walker.mistake(one.root.name, value.span, note, "global")
        for position, other in given.items():  # an argument that another parameter changes
            change = walker.state.missed(walker.objects(other), now - 1)
            if position != parameter and change is not None:
                walker.mistake(getattr(other, "name", "it"), value.span, change)
    for each in summary.holds:
        held = objects(each.held)
        for _ in range(each.depth):
            made = Object()
            made.hold(walker.any_step(), held)
            held = frozenset({made})
        for one in objects(each.into):
            one.hold(walker.any_step() if each.step is None else each.step, held)
    found = frozenset(o for r in summary.result for o in objects(r))
    inside = frozenset(o for r in summary.inside for o in objects(r))
    if inside or not found:
        made = Object(True, walker.kind(target) is Kind.ARRAY, is_cell=walker.kind(target) is Kind.CELL)
        made.hold(walker.any_step(), inside)
        found |= {made}
    walker.bind(target, found)


def call_method(walker: Walker, target: Var, base: Atom, method: Method, value: Apply) -> None:
    """A call of a method of an operand."""
    own, name = method_function(method), method.name
    if own is not None and not walker.is_own(own.definition):
        call_definition(walker, target, own.definition, (base, *value.arguments), value)
        return
    objects = walker.objects(base)
    if any(o.is_array for o in objects):
        views.bind_result(walker, target, name, (base, *value.arguments), value.keywords, value.span, is_method=True)
    elif name in ("items", "keys"):
        walker.places[target] = Place(NONE, walker.tick(), source=Source(NONE, (None, Source(objects)), True))
    elif name in ("get", "setdefault"):
        held = elements(walker, base) | frozenset(o for a in value.arguments[1:] for o in walker.objects(a))
        walker.bind(target, held)
    elif name in ("copy", "values", "_replace", "_asdict"):
        copy_container(walker, target, objects)
        _hold_fields(walker, target, value)
    else:
        walker.bind_new(target)


def _hold_fields(walker: Walker, target: Var, value: Apply) -> None:
    """Put the arguments by name into what a call makes: fields, or items with these keys."""
    for made in walker.objects(target):
        for name, atom in value.keywords:
            made.hold(Step(name), walker.objects(atom))


def _call_object(walker: Walker, target: Var, found: object, value: Apply) -> None:
    """A call of a Python object."""
    arguments = value.arguments
    definition = found if isinstance(found, Definition) else getattr(found, "__relay__", None)
    if isinstance(found, GlobalFunction):
        definition = found.definition
    if found in (enumerate, zip):
        sources = tuple(_source(walker, a) for a in arguments)
        several = (None, *sources[:1]) if found is enumerate else sources
        is_counted = found is enumerate and len(arguments) == 1 and not value.keywords
        walker.places[target] = Place(NONE, walker.tick(), source=Source(NONE, several, is_counted))
    elif isinstance(found, type) and is_plain_class(found) and not is_record_class(found):
        methods.make_object(walker, target, found, value)
    elif isinstance(found, type) and (is_record_class(found) or data_class(found) is not None):
        _construct(walker, target, value)
    elif any(found is c for c in COPIES) or getattr(found, "__relay_builtin__", None) == "replace":
        if arguments:
            copy_container(walker, target, walker.objects(arguments[0]))
        else:
            walker.bind(target, frozenset({Object()}))
        _hold_fields(walker, target, value)
    elif found in (min, max):
        objects = frozenset(o for a in arguments for o in elements(walker, a))
        if len(arguments) > 1:  # one argument holds what is compared
            objects |= frozenset(o for a in arguments for o in walker.objects(a))
        walker.bind(target, frozenset(o for o in objects if walker.kind(target) is not Kind.PLAIN))
    elif getattr(found, "__relay_builtin__", None) == "ref" and arguments:
        effects.new_cell(walker, target, arguments[0])
    elif (name := _numpy_name(walker, found, definition)) is not None:
        views.bind_result(walker, target, name, arguments, value.keywords, value.span)
    elif isinstance(definition, Definition) and not walker.is_own(definition):
        call_definition(walker, target, definition, arguments, value)
    elif (read := walker.undecorated(found)) is not None:
        call_definition(walker, target, read, arguments, value)
    elif (read := walker.undecorated(inspect.getattr_static(type(found), "__call__", None))) is not None:
        call_definition(walker, target, read, (value.function, *arguments), value)
    else:
        walker.bind_new(target)


def _numpy_name(walker: Walker, found: object, definition: object) -> str | None:
    """The name of a function of NumPy's that has views, or changes an argument; None for others."""
    module = str(getattr(found, "__module__", None) or "").partition(".")[0]
    if isinstance(definition, Definition):
        name = definition.function.name if walker.is_own(definition) else ""
    else:
        name = str(getattr(found, "__name__", "")) if module == "numpy" else ""
    return name if views.is_view(name) else None


def _source(walker: Walker, atom: Atom) -> Source | None:
    place = walker.place(atom)
    return None if place is None else place.source or Source(place.objects)


def _construct(walker: Walker, target: Var, value: Apply) -> None:
    """A record of its arguments."""
    meaning = walker.meanings.value(target)
    names = meaning.form.names if isinstance(meaning, Tuple) and meaning.form is not None else ()
    make_container(walker, target, value.arguments, names)
    _hold_fields(walker, target, value)


# ---- what the front end writes


def _intrinsic(walker: Walker, target: Var, name: str, value: Apply) -> None:
    arguments = value.arguments
    rule = _INTRINSICS.get(name)
    if name == "augment":
        methods.augment(walker, target, value)
    elif (own := methods.method_of(walker, name, value)) is not None:
        methods.call(walker, target, name, own, value)
    elif name in ("pop", "popitem", "setdefault"):
        _pop(walker, target, value, keeps=name == "setdefault")
    elif target in walker.definition.updated:
        _update(walker, target, name, value)
    elif rule is not None:
        rule(walker, target, arguments)
    else:
        walker.bind_new(target)


def _update(walker: Walker, target: Var, name: str, value: Apply) -> None:
    """A method that changes a list or dict."""
    whole, *given = value.arguments
    slot = place.slot if (place := walker.place(whole)) is not None else None
    objects = effects.change(walker, whole, value.span)
    for one in objects:
        one.sizes += 1
        one.shifts += name in SHIFTING
        for atom in given:
            held = elements(walker, atom) if name in ("spread", "update") else walker.objects(atom)
            walker.state.put(one, walker.any_step(), held)
    walker.bind(target, objects, slot)


def _pop(walker: Walker, target: Var, value: Apply, keeps: bool = False) -> None:
    """`xs.pop(i)`: a pair of the item, which the list does not hold any more, and the list; `d.setdefault(key, value)`
    with the value, which the dict `keeps`."""
    whole = value.arguments[0]
    place = walker.place(whole)
    objects, step = walker.objects(whole), walker.any_step()
    found = walker.contents(objects, step)
    effects.change(walker, whole, value.span)
    for one in objects:
        one.sizes += 1
        one.shifts += not keeps
        if keeps:
            for atom in value.arguments[2:]:
                walker.state.put(one, step, walker.objects(atom))
            continue
        walker.state.take(one, step)  # the part of a list from outside; of another list it may be any item
    if keeps:
        held = walker.contents(objects, step)
    else:
        held = frozenset(o if o.parent in objects else o.twin(objects) for o in found)
    walker.popped[target] = [(None, None), (None if place is None else place.slot, None)]
    pair = Object()
    pair.hold(Step(0), held)
    pair.hold(Step(1), objects)
    walker.places[target] = Place(frozenset({pair}), walker.tick())


def _append(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    """A longer list that the front end makes: of a comprehension, or of a display."""
    objects = walker.objects(arguments[0])
    for one in objects:
        walker.state.put(one, walker.any_step(), walker.objects(arguments[-1]))
    walker.bind(target, objects)


def _spread(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    walker.bind(target, frozenset({Object()}))
    for made in walker.objects(target):
        for atom in arguments:
            made.hold(walker.any_step(), elements(walker, atom))


def _same(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    place = walker.place(arguments[0])
    if place is None:
        walker.places.pop(target, None)
    else:
        walker.places[target] = place


def _rest(walker: Walker, target: Var, arguments: Sequence[Atom]) -> None:
    """`a, *rest = xs`: the parts of which one is a new list."""
    held, made, rest = elements(walker, arguments[0]), Object(), Object()
    rest.hold(walker.any_step(), held)
    made.hold(walker.any_step(), held | {rest})
    walker.bind(target, frozenset({made}))


_INTRINSICS: dict[str, Callable[[Walker, Var, Sequence[Atom]], None]] = {
    "list": make_container,
    "append": _append,
    "extend": _append,
    "spread": _spread,
    "growing": _same,
    "each": _same,
    "assigned": _same,
    "unpack": _rest,
}
