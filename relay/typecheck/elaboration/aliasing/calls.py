"""Calls: constructors and containers, functions of Python and NumPy that give what they are given, and functions of the
program, with what they change in their arguments."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Mapping, Sequence

import attrs

from relay.ir.definition import Definition, data_class, given_back
from relay.ir.expr import Atom, Function, Global, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.partial_calls import PartialCall
from relay.ir.structure import is_plain_class, is_record_class
from relay.ir.surface import Apply, Attribute, Index
from relay.ir.traverse import free_variables
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
from relay.typecheck.elaboration.aliasing import effects, failures, generators, intrinsics, methods, views
from relay.typecheck.elaboration.aliasing.containers import copy_container, elements, make_container
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import NONE, Change, Object, Objects, Outside, Step
from relay.typecheck.elaboration.aliasing.places import Place, Slot, Source
from relay.typecheck.elaboration.aliasing.summaries import Reference
from relay.typecheck.elaboration.aliasing.walk import Walker
from relay.typecheck.elaboration.values.bound_methods import changing_function, method_function

COPIES = (list, tuple, dict, sorted, copy.copy, dataclasses.replace)


def define(walker: Walker, target: Var, function: Function) -> None:
    """A local function is made, which holds what it captures: it may be called by anyone with anything."""
    if function.label in walker.active:
        walker.bind_new(target)
        return
    defaults = [p.default for p in function.signature or () if p.default is not None]
    made = Object()
    for atom in (*free_variables(function), *defaults):
        made.hold(walker.any_step(), walker.objects(atom))
    walker.bind(target, frozenset({made}))
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
            intrinsics.apply(walker, target, name, value)
        case Static(meaning):
            _call_object(walker, target, meaning, value)
        case Global(name):
            found = walker.definition.scope.resolve(name)
            _call_object(walker, target, found, value)
        case Var() as function:
            _call_variable(walker, target, function, value)


def call_with_stars(walker: Walker, target: Var, value: Apply) -> None:
    """`f(*items, **named, key=v)`: a call with the elements, each of which may be any where their number is not
    known."""
    function, items, *dicts = value.arguments
    meaning = walker.meanings.value(items) if isinstance(items, Var) else None
    count = len(meaning.items) if isinstance(meaning, Tuple) else 0
    atoms, keywords = [Var("argument") for _ in range(count)], list(value.keywords)
    for position, atom in enumerate(atoms):
        walker.places[atom] = Place(walker.contents(walker.objects(items), Step(position)), walker.tick())
    for part in dicts:
        known = walker.meanings.value(part) if isinstance(part, Var) else None
        for name in known.form.names if isinstance(known, Tuple) and known.form is not None else ():
            keywords.append((name, Var(name)))
            walker.places[keywords[-1][1]] = Place(walker.contents(walker.objects(part), Step(name)), walker.tick())  # type: ignore[index]
    call(walker, (target,), Apply(function, tuple(atoms), tuple(keywords), value.span))


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
        places = _by_parameter(walker, definition.function, arguments, value.keywords)
        summary = walker.summarize(definition)
        stale = {places[p]: c for p, c in summary.missed.items() if p in places}
        for late in (o.generator.change for o in walker.objects(result) if o.generator is not None):
            changed = {r.parameter for r, _ in summary.changes} & places.keys()
            stale |= {} if late is None else {places[p]: late for p in changed}
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
    given = _by_parameter(walker, function, value.arguments, value.keywords)
    defaults = {i: p.default for i, p in enumerate(function.signature or ()) if p.default is not None}
    for position, parameter in enumerate(function.parameters):
        atom = given.get(position, defaults.get(position))
        place = None if atom is None else walker.place(atom)
        if place is None:
            walker.bind_new(parameter)
        else:
            walker.bind(parameter, place.objects, place.slot)
    began = walker.tick()
    handed = _run_local(walker, function, given, value)
    if handed is None:
        walker.bind_new(target)
    else:
        around = [walker.objects(a) for a in (*given.values(), *free_variables(function))]
        generators.make_local(walker, handed.objects, function.name, around, began, value.span)
        walker.bind(target, handed.objects, None, handed.missed)
        back = [walker.place(given[p]) if p in given else None for p in given_back(function)]
        if back:
            slots = [None if place is None else place.slot for place in back]
            walker.popped[target] = [(None, None), *((slot, None) for slot in slots)]


def _run_local(walker: Walker, function: Function, given: Mapping[int, Atom], value: Apply) -> Place | None:
    """Walk through a local function, whose changes of what it gives back are lost if it fails."""
    began, before, walker.failed = walker.tick(), walker.failed, {}
    handed = walker.run(function)
    passed = [walker.objects(given[p]) for p in given_back(function) if p in given]
    roots = {one.root for objects in passed for one in objects}
    late = [(one, change) for one, change in walker.failed.items() if change.time > began and one.root in roots]
    walker.failed |= before
    for one, change in late:
        failures.lose(walker, {one}, Change(walker.tick(), value.span, function.name, within=change))
    return handed


def _by_parameter(
    walker: Walker, function: Function, arguments: Sequence[Atom], keywords: Sequence[tuple[str, Atom]]
) -> Mapping[int, Atom]:
    """The arguments of parameters; `*args` is a tuple, and `**kwargs` a dict, of all others."""
    kinds = [p.kind for p in function.signature or ()]
    names = {p.name: i for i, p in enumerate(function.parameters) if not kinds or not kinds[i].startswith("var")}
    count = kinds.index("var_positional") if "var_positional" in kinds else len(function.parameters)
    found = dict(enumerate(arguments[:count]))
    found |= {names[name]: atom for name, atom in keywords if name in names}
    if "var_positional" in kinds:
        found[count] = Var(function.parameters[count].name)
        make_container(walker, found[count], arguments[count:])  # type: ignore[arg-type]
    if "var_keyword" in kinds:
        others = [(name, atom) for name, atom in keywords if name not in names]
        rest = found[kinds.index("var_keyword")] = Var(function.parameters[-1].name)
        make_container(walker, rest, [atom for _, atom in others], [name for name, _ in others])
    return found


def call_definition(
    walker: Walker, target: Var, definition: Definition, arguments: Sequence[Atom], value: Apply
) -> None:
    """A call of a function of the program, with these arguments by position."""
    function = definition.function
    summary = walker.summarize(definition)
    given = _by_parameter(walker, function, arguments, value.keywords)

    def objects(reference: Reference) -> Objects:
        start = reference.parameter
        found = walker.outside(start.name, start.value) if isinstance(start, Outside) else given_objects(start)
        for step in reference.path:
            found = walker.contents(found, step if step.key is not None else walker.any_step())
        return found

    def given_objects(parameter: int) -> Objects:
        if parameter in given:
            return walker.objects(given[parameter])
        default = function.signature[parameter].default if parameter < len(function.signature or ()) else None
        return walker.outside(function.parameters[parameter].name, getattr(default, "value", None), True)

    if summary.may_fail:
        walker.fail()
    for reference, inner in summary.failed:
        failures.lose(walker, objects(reference), Change(walker.tick(), value.span, function.name, within=inner))
    generators.check_call(walker, function.name, summary, given, value.span)
    late: Change | None = None
    for parameter in dict.fromkeys(reference.parameter for reference, _ in summary.changes):
        now, atom = walker.tick(), given.get(parameter)
        name = "it" if atom is None else walker.written_name(atom)
        around = () if atom is None else effects.steps_to(walker, atom)
        is_record = isinstance(atom, Var) and walker.kind(atom) is Kind.RECORD
        for reference, inner in summary.changes:
            steps = (*reversed(reference.path), *around)
            note = Change(now, value.span, name, steps, is_sum=inner.is_sum, is_of_record=is_record, within=inner)
            if summary.generator is not None:
                late = note = attrs.evolve(note, is_late=True)
            for one in objects(reference) if reference.parameter == parameter else NONE:
                walker.state.change(one, note)
                if one.root.outside is not None:
                    walker.outside_changes(one.root.outside, value.span, note)
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
    if inside or not found or summary.is_iterator:
        made = Object(True, walker.kind(target) is Kind.ARRAY, is_cell=walker.kind(target) is Kind.CELL)
        made.hold(walker.any_step(), inside)
        if summary.is_iterator:
            generators.make(walker, made, summary.generator, late, [walker.objects(a) for a in given.values()])
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
        element = Object()
        for atom in arguments:
            element.hold(walker.any_step(), elements(walker, atom))
        over = frozenset(o for a in arguments for o in walker.objects(a))
        walker.bind_iterator(target, frozenset({element}), Source(NONE, several, is_counted), over)
    elif isinstance(found, type) and is_plain_class(found) and not is_record_class(found):
        methods.make_object(walker, target, found, value)
    elif isinstance(found, type) and (is_record_class(found) or data_class(found) is not None):
        _construct(walker, target, value)
    elif found is iter and arguments:
        objects = walker.objects(arguments[0])
        if any(o.is_iterator for o in objects):
            walker.bind(target, objects)
        else:
            walker.bind_iterator(target, elements(walker, arguments[0]), over=objects)
    elif found is reversed and arguments:
        walker.bind_iterator(target, elements(walker, arguments[0]), over=walker.objects(arguments[0]))
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
