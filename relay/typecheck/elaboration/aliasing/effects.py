"""Effects of expressions on objects: one case for each kind of expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from relay.errors import Span
from relay.ir.debugging.source_names import is_written
from relay.ir.expr import (
    Assert,
    Atom,
    Constant,
    Expr,
    Global,
    Lambda,
    MakeTuple,
    OpCall,
    RefNew,
    RefRead,
    RefWrite,
    Static,
    Var,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Annotated, Apply, Attribute, ForEach, Index, IndexUpdate, SetAttribute, Slice, Unpack
from relay.ir.traverse import operands
from relay.typecheck.elaboration.abstract_values import Method
from relay.typecheck.elaboration.aliasing import calls, containers, failures, generators, methods, views
from relay.typecheck.elaboration.aliasing.kinds import Kind
from relay.typecheck.elaboration.aliasing.objects import (
    NONE,
    Change,
    Content,
    Object,
    Objects,
    Step,
)
from relay.typecheck.elaboration.aliasing.places import Place, Slot
from relay.typecheck.elaboration.aliasing.walk import Walker, step_of_counter

_FROM_THE_END, _SEVERAL = Var("from the end"), Var("several")


def effect(walker: Walker, targets: tuple[Var, ...], value: Expr) -> None:
    """Note what an expression does to objects, and what its targets are."""
    failures.note(walker, value)
    if isinstance(value, ForEach):
        generators.begin(walker, value)
        return
    _bind_targets(walker, targets, value)
    generators.use(walker, targets, value)


def _bind_targets(walker: Walker, targets: tuple[Var, ...], value: Expr) -> None:
    match value:
        case Attribute(atom, "shape" | "ndim" | "size" | "dtype") if _is_array(walker, atom):
            return
        case IndexUpdate() if methods.set_item(walker, targets[0], value):
            return
        case IndexUpdate(atom, items, new, span):
            read_all(walker, [i for i in operands(value) if i is not atom], span)
            replace_item(walker, targets[0], atom, step_of_items(walker, atom, items), new, span)
            return
        case Apply(Static(Intrinsic("set_field")), (atom, Static(name), new), _, span):
            walker.read(new, span)
            replace_item(walker, targets[0], atom, Step(name), new, span)
            return
        case Apply(Static(Intrinsic("given_back")), (result, *changed), _, span):
            _give_back(walker, targets[0], result, changed, span)
            return
        case Var():
            _alias(walker, targets[0], value)
            return
        case Apply(Static(Intrinsic("growing")), (Var() as atom,)):
            _alias(walker, targets[0], atom)
            return
    if not isinstance(value, Lambda | RefNew | RefRead | RefWrite):
        read_all(walker, operands(value), value.span)
    match value:
        case OpCall():
            _operator(walker, targets[0], value)
        case Apply():
            calls.call(walker, targets, value)
        case Attribute():
            _attribute(walker, targets[0], value)
        case Index():
            if (own := methods.user_method(walker, value.value, "__getitem__")) is not None:
                keys = tuple(i for i in value.items if not isinstance(i, Slice))
                calls.call_method(walker, targets[0], value.value, own, Apply(value.value, keys[:1], (), value.span))
                return
            step = step_of_items(walker, value.value, value.items)
            read_item(walker, targets[0], value.value, step, is_view=not _has_arrays(walker, value))
        case MakeTuple(items):
            containers.make_container(walker, targets[0], items)
        case Annotated(atom) if targets:
            _alias(walker, targets[0], atom)
        case Unpack():
            _unpack(walker, targets, value.value)
        case Global() | Constant() | Static():
            bind_outside(walker, targets[0], value)
        case Lambda(function):
            calls.define(walker, targets[0], function)
        case RefNew() | RefRead() | RefWrite() | SetAttribute():
            _cell(walker, targets, value)
        case Assert():
            pass
        case _:
            for target in targets:
                walker.bind_new(target)


def read_all(walker: Walker, atoms: Iterable[Atom], span: Span | None) -> None:
    """Operands are read."""
    for atom in atoms:
        walker.read(atom, span)


def _give_back(walker: Walker, target: Var, result: Atom, changed: Sequence[Atom], span: Span | None) -> None:
    """The end of a function that gives back what it changes: its caller may read this, if it has seen all changes."""
    walker.read(result, span)
    for position, atom in enumerate(changed):
        missed = walker.missed(atom)
        if missed is not None and len(walker.active) == 1:
            walker.stale[position] = missed
        elif missed is not None:
            walker.read(atom, span)
    containers.make_container(walker, target, (result, *changed))


def _is_array(walker: Walker, atom: Atom) -> bool:
    return isinstance(atom, Var) and walker.meanings.kind(atom) is Kind.ARRAY


def _alias(walker: Walker, target: Var, atom: Atom) -> None:
    """`y = x`: the same object."""
    found = walker.place(atom)
    if found is None:
        if isinstance(atom, Global):
            bind_outside(walker, target, atom)
        else:
            walker.places.pop(target, None)
    elif found.source is not None:
        walker.places[target] = found
    else:
        walker.bind(target, found.objects, found.slot, walker.missed(atom))


def bind_outside(walker: Walker, target: Var, atom: Atom) -> None:
    """Let a variable be an object of Python: a global one, or one that a program holds as it is."""
    objects = walker.objects(atom)
    if objects:
        walker.bind(target, objects)
    else:
        walker.bind_new(target)


# ---- items and fields


def step_of(walker: Walker, whole: Atom, item: Atom) -> Step:
    """The step of an index or a key."""
    holders = walker.objects(whole)
    match item:
        case Static(int() as key) if key < 0:
            return Step(key, _FROM_THE_END, max((o.sizes for o in holders), default=0))
        case Static(int() as key):
            return Step(key, None, max((o.shifts for o in holders), default=0))
        case Static(str() as key):
            return Step(key)
        case Static(None | float() as key):
            return Step(key, _SEVERAL)
        case Var():
            while isinstance(inner := walker.values.get(item), Var):
                item = inner
            if isinstance(walker.values.get(item), OpCall):
                return Step(_number_key(walker, item), _SEVERAL)
            return Step(None, item, walker.moments.get(item, 0))
        case _:
            return walker.any_step()


def _number_key(walker: Walker, atom: Atom, depth: int = 4) -> object:
    """The way in which an index is computed: `i % 4` is the same number as long as i is."""
    while isinstance(atom, Var) and isinstance(inner := walker.values.get(atom), Var):
        atom = inner
    value = walker.values.get(atom) if isinstance(atom, Var) else None
    if isinstance(value, OpCall) and depth:
        return (value.operator, *(_number_key(walker, a, depth - 1) for a in value.arguments))
    if isinstance(atom, Var):
        return atom, walker.moments.get(atom, 0)
    return atom.value if isinstance(atom, Static) else atom


def step_of_items(walker: Walker, whole: Atom, items: tuple[Atom | Slice, ...]) -> Step:
    """The step of a subscript. Of several items, or a slice, it may be any part, and the same for the same items."""
    if len(items) == 1 and not isinstance(items[0], Slice):
        return step_of(walker, whole, items[0])
    bounds = (b for i in items for b in ((i.start, i.stop, i.step) if isinstance(i, Slice) else (i, i, i)))
    return Step(tuple(None if b is None else step_of(walker, whole, b) for b in bounds), _SEVERAL)


def _has_arrays(walker: Walker, value: Index) -> bool:
    """True if a subscript selects elements by arrays or lists, so that NumPy copies them."""
    items = [i for i in value.items if isinstance(i, Var)]
    return any(walker.kind(i) in (Kind.ARRAY, Kind.LIST, Kind.FIXED) for i in items)


def read_item(walker: Walker, target: Var, whole: Atom, step: Step, *, is_view: bool = True) -> None:
    """`y = x[i]`: of a list the object in it, of an array a view."""
    objects = walker.objects(whole)
    held = walker.contents(objects, step)
    value = walker.values.get(target)
    has_slices = isinstance(value, Index) and any(isinstance(i, Slice) for i in value.items)
    is_array = any(o.is_array for o in objects)
    if is_array and walker.kind(target) is Kind.UNKNOWN:  # it may be a number
        walker.places.pop(target, None)
    elif is_array and not is_view:
        walker.bind_new(target)
    elif has_slices and not is_array:
        containers.copy_container(walker, target, objects)
    else:
        holder = whole if isinstance(whole, Var) else None
        for one in held:
            one.is_array = one.is_array or walker.kind(target) is Kind.ARRAY
            one.is_cell = one.is_cell or walker.kind(target) is Kind.CELL
        walker.bind(target, held, Slot(objects, step, holder))


def steps_to(walker: Walker, atom: Atom) -> tuple[Step, ...]:
    """The steps by which an object was reached, from the last one."""
    found: list[Step] = []
    seen: set[Atom] = set()
    while atom not in seen and (place := walker.place(atom)) is not None and place.slot is not None:
        seen.add(atom)
        found.append(place.slot.step)
        if place.slot.holder is None:
            break
        atom = place.slot.holder
    return tuple(found)


def change(walker: Walker, atom: Atom, span: Span | None, step: Step | None = None, *, is_sum: bool = False) -> Objects:
    """An operand's object changes in place, at a step or as a whole. Gives the object."""
    objects = walker.objects(atom)
    steps = steps_to(walker, atom)
    name = walker.written_name(atom)
    note = Change(walker.tick(), span, name, steps if step is None else (step, *steps), is_sum=is_sum)
    note = attrs.evolve(note, is_of_record=walker.kind(atom) is Kind.RECORD) if isinstance(atom, Var) else note
    for one in objects:
        walker.state.change(one, note, step)
        if one.root.outside is not None:
            walker.outside_changes(one.root.outside, span, note)
    return objects


def replace_item(walker: Walker, target: Var, whole: Atom, step: Step, new: Atom, span: Span | None) -> None:
    """`x[i] = v`: x is the same object with another item. If v is the object that is there already, nothing changes."""
    place, given = walker.place(whole), walker.place(new)
    if place is None:
        walker.bind_new(target)
        return
    slot = None if given is None else given.slot
    is_there = slot is not None and slot.step == step and slot.objects & place.objects
    if given is None or not is_there or given.objects != walker.contents(place.objects, step):
        walker.read(whole, span)
        change(walker, whole, span, step)
        for one in place.objects:
            if not one.is_array:
                if len(place.objects) == 1 and step.key is not None and step.variable is None:
                    walker.contents(place.objects, step)
                    walker.state.take(one, step)
                walker.state.put(one, step, walker.objects(new))
        walker.bind(target, place.objects, place.slot, walker.missed(whole) if place.missed else None)
        return
    skipped: dict[Object, Objects] = {}
    for one in place.objects:
        held = walker.state.contents(one)
        skipped[one] = frozenset(g for g in given.objects if held.count(g) < 2)
    missed = place.missed or walker.state.missed(place.objects, place.time, skipped)
    if missed is not None:
        walker.mistake(walker.written_name(whole), span, missed)
    walker.bind(target, place.objects, place.slot)


def _attribute(walker: Walker, target: Var, value: Attribute) -> None:
    if methods.read_property(walker, target, value):
        return
    if isinstance(walker.meanings.value(target), Method):  # which holds its object
        containers.make_container(walker, target, (value.value,))
        return
    owner = walker.owner(value.value)
    if owner is not None:
        walker.bind(target, walker.outside(f"{owner.__name__}.{value.name}", getattr(owner, value.name, None)))
        return
    if value.name == "value" and any(o.is_cell for o in walker.objects(value.value)):
        _read_cell(walker, target, value.value)
    elif _is_array(walker, value.value):
        view = value.name in views.ATTRIBUTES and walker.kind(target) is not Kind.PLAIN
        if view:
            read_item(walker, target, value.value, walker.any_step())
        else:
            walker.places.pop(target, None)
    else:
        read_item(walker, target, value.value, Step(value.name))
        shared = methods.class_attribute(walker, value.value, value.name)
        if shared and walker.kind(target) is not Kind.PLAIN:
            walker.bind(target, walker.objects(target) | shared, Slot(walker.objects(value.value), Step(value.name)))


def _unpack(walker: Walker, targets: tuple[Var, ...], atom: Atom) -> None:
    found = walker.place(atom)
    if found is None:
        for target in targets:
            walker.bind_new(target)
        return
    if isinstance(atom, Var) and atom in walker.popped:
        for position, (target, (slot, missed)) in enumerate(zip(targets, walker.popped[atom], strict=True)):
            objects = walker.contents(found.objects, Step(position))
            for one in objects:
                one.is_array = one.is_array or walker.kind(target) is Kind.ARRAY
            walker.bind(target, objects, slot, missed)
        return
    if found.source is None:
        for position, target in enumerate(targets):
            read_item(walker, target, atom, Step(position, None, max(o.shifts for o in found.objects)))
        return
    assert found.step is not None
    several, step = found.source.several, found.step
    if found.source.is_counted and targets:
        if step.variable is not None:  # it has a number already
            walker.values[targets[0]] = step.variable
        else:
            walker.moments[targets[0]] = step.time
            step = step_of_counter(targets[0], step)
    for source, target in zip(several, targets, strict=False):
        if source is None:
            continue
        if source.several:
            walker.places[target] = Place(NONE, walker.tick(), source=source, step=step)
        else:
            walker.bind(target, walker.contents(source.objects, step), Slot(source.objects, step))


# ---- references


def _cell(walker: Walker, targets: tuple[Var, ...], value: RefNew | RefRead | RefWrite | SetAttribute) -> None:
    match value:
        case RefNew(atom):
            new_cell(walker, targets[0], atom)
        case RefRead(atom):
            _read_cell(walker, targets[0], atom)
        case RefWrite(atom, new) | SetAttribute(atom, _, new):
            _write_cell(walker, atom, new)


def _write_cell(walker: Walker, atom: Atom, new: Atom) -> None:
    """`r.value = v`, where r may be one of several references."""
    cells, given = walker.objects(atom), walker.place(new)
    content = Content(walker.objects(new), walker.tick(), walker.missed(new), walker.written_name(atom))
    old = {c: walker.state.cells[c] for c in cells if c in walker.state.cells}
    held = [o for c in old.values() for o in c.objects]
    came_from_there = given is not None and given.slot is not None and given.slot.objects == cells
    if came_from_there and len(cells) == len(old) > 1 and len(set(held)) == len(held) and set(held) == content.objects:
        for cell, before in old.items():  # it is what is there
            walker.state.cells[cell] = Content(before.objects, content.time, before.missed or content.missed)
        return
    for cell in cells:
        if len(cells) > 1:  # of which one it is does not show, so nothing is known of what they hold now
            is_array = isinstance(new, Var) and walker.kind(new) is Kind.ARRAY
            content = Content(frozenset({Object(True, is_array)}), walker.tick())
        walker.state.cells[cell] = content


def new_cell(walker: Walker, target: Var, content: Atom) -> None:
    """A new reference."""
    cell = Object(is_cell=True)
    walker.state.cells[cell] = Content(walker.objects(content), walker.tick(), walker.missed(content))
    walker.places[target] = Place(frozenset({cell}), walker.tick())


def _read_cell(walker: Walker, target: Var, cell: Atom) -> None:
    """`r.value`: the object in a reference, as it was written there."""
    contents = []
    for one in walker.objects(cell):
        if one not in walker.state.cells:
            kind = walker.kind(target)
            made = Object(True, kind is Kind.ARRAY, is_cell=kind is Kind.CELL)
            walker.state.cells[one] = Content(frozenset({made}), 0)
        contents.append(walker.state.cells[one])
    objects: Objects = frozenset().union(*(c.objects for c in contents))
    missed = next((c.missed for c in contents if c.missed is not None), None)
    walker.bind(target, objects, Slot(walker.objects(cell), Step("value")), missed)
    if target in walker.places and len(contents) == 1:  # of several, which one it is does not show
        walker.places[target] = attrs.evolve(walker.places[target], time=contents[0].time)


# ---- operators


def _operator(walker: Walker, target: Var, value: OpCall) -> None:
    """An operator gives a new array or list; `x += v` changes x, if x is an array or a list."""
    first = value.arguments[0]
    if methods.operate(walker, target, value.operator, value.arguments, value.span):
        return
    if target in walker.definition.updated and isinstance(first, Var) and walker.kind(first).can_change:
        is_sum = walker.kind(first) is Kind.ARRAY and is_written(target.name, target.span)  # and not `x[i] += v`
        objects = change(walker, first, value.span, is_sum=is_sum)
        place = walker.place(first)
        if walker.kind(first) is Kind.LIST:
            for one in objects:
                one.sizes += 1
                walker.state.put(one, walker.any_step(), containers.elements(walker, value.arguments[1]))
        walker.bind(target, objects, None if place is None else place.slot)
        return
    kind = walker.kind(target)
    if kind in (Kind.LIST, Kind.FIXED) and value.operator in ("add", "multiply", "bitwise_or"):
        made = Object()
        for argument in value.arguments:
            made.hold(
                walker.any_step(), containers.elements(walker, argument), 2 if value.operator == "multiply" else 1
            )
        walker.bind(target, frozenset({made}))
        return
    walker.bind_new(target)
