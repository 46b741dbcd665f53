"""Blocks, branches and loops: one case for each node of the surface IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import InternalError, Label, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.expr import (
    Annotated,
    Apply,
    Arm,
    Assert,
    Atom,
    Attribute,
    Binding,
    Block,
    Call,
    Constant,
    Dead,
    Exit,
    ForEach,
    Global,
    If,
    Index,
    IndexUpdate,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Next,
    OpCall,
    PatternMatch,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    SetAttribute,
    Static,
    Unpack,
    Var,
    Yield,
)
from relay.ir.traverse import free_variables, operands
from relay.ir.types import BOOL, Form, Kind, RefType, StackType, TensorType, TupleType, Type, prune, show
from relay.operator import Operator, Undetermined
from relay.typecheck.dims import follows_equal
from relay.typecheck.elaboration import comparisons, growing, positions, texts
from relay.typecheck.elaboration.entities import (
    FUNCTIONS,
    Computed,
    Consequence,
    Context,
    Entity,
    Failed,
    Handler,
    Later,
    Length,
    LocalFunction,
    Number,
    Object,
    Output,
    Size,
    Tuple,
    Typed,
    dim_of,
    is_constant_bool,
)
from relay.typecheck.elaboration.functions import annotation_type, expand
from relay.typecheck.elaboration.kept import Kept
from relay.typecheck.elaboration.session import ListGrows, Session, clash_notes, shown, undecided
from relay.typecheck.unification import Clash, resolve

OnYield = Callable[[Output, tuple[Entity, ...], "Span | None"], None]


def elaborate_block(session: Session, context: Context, block: Block, out: Output, on_yield: OnYield | None) -> None:
    """Elaborate a block into `out`. What its `yield` does is the caller's; `next` and `exit` are the handlers'.

    A binding with a mistake is reported, and elaboration goes on without what depends on it.
    """
    for binding in block.bindings:
        session.hints.span = binding.value.span or session.hints.span
        try:
            elaborate_binding(session, context, binding, out)
            session.solver.run()
        except (Consequence, RelayError, Undetermined) as error:
            error = undecided(error, session.hints.span)
            session.report(error.at(binding.value.span) if isinstance(error, RelayError) else error)
            _report_names(session, context, binding)
            assign(context, binding.targets, [Failed()] * len(binding.targets))
        if out.terminator is not None:  # a branch that the checker decided has left
            return
    try:
        _terminate(session, context, block, out, on_yield)
    except (Consequence, RelayError, Undetermined) as error:
        session.report(undecided(error, session.hints.span))
        out.terminator = Dead()


def _report_names(session: Session, context: Context, binding: Binding) -> None:
    """Report the other names without a meaning in a binding that has failed."""
    for atom in operands(binding.value):
        if isinstance(atom, Global):
            try:
                atom_entity(context, atom)
            except (Consequence, RelayError) as error:
                session.report(error)


def _terminate(session: Session, context: Context, block: Block, out: Output, on_yield: OnYield | None) -> None:
    if not isinstance(block.terminator, Dead):
        session.handed = block.terminator.values
    match block.terminator:
        case Yield(values, span):
            if on_yield is None:
                raise InternalError("a yield outside of an arm")
            on_yield(out, _entities(context, values), span)
        case Next(label, values, span):
            handler = context.handlers[label]
            assert handler.on_next is not None
            entities = _entities(context, values)
            session.rounds.hand_on(block.terminator, entities)
            handler.on_next(out, entities, span)
        case Exit(label, values, span):
            context.handlers[label].on_exit(out, _entities(context, values), span)
        case Dead():
            out.terminator = Dead()


def _entities(context: Context, atoms: Sequence[Atom]) -> tuple[Entity, ...]:
    """What the operands of control flow mean: of a `yield`, `next` or `exit`, or where a loop starts. Some may be
    Failed."""
    return tuple(context.lookup(atom) if isinstance(atom, Var) else atom_entity(context, atom) for atom in atoms)


def atom_entity(context: Context, atom: Atom) -> Entity:
    """What a surface atom means. Raises Consequence if a mistake left it without a meaning."""
    from relay.typecheck.elaboration.objects import object_entity, resolve_name

    match atom:
        case Var():
            return context.value(atom)
        case Constant():
            return Typed(atom, atom.type)
        case Static(value, span):
            return object_entity(value, span)
        case Global(name, _, span):
            return resolve_name(context.scope, name, span, (variable.name for variable in context.environment))


def elaborate_binding(session: Session, context: Context, binding: Binding, out: Output) -> None:
    """Elaborate one binding: write what exists at run time, and note what its targets mean."""
    from relay.typecheck.elaboration import calls, iteration, matching, operators, tensors

    targets, value = binding.targets, binding.value
    entity: Entity | None

    def entity_of(atom: Atom) -> Entity:
        return atom_entity(context, atom)

    match value:
        case OpCall(name, arguments, attributes, span):
            operands = [entity_of(a) for a in arguments]
            described = [describe(a) for a in arguments]
            entity = operators.apply_named(session, out, name, operands, dict(attributes), span, described)
        case Apply(function, arguments, keywords, span):
            callee = entity_of(function)
            named = [(k, entity_of(a)) for k, a in keywords]
            described = [describe(a) for a in arguments]
            given = [entity_of(a) for a in arguments]
            session.rounds.store(arguments, given)
            entity = calls.apply(session, context, out, callee, given, named, span, described, describe(function))
        case Attribute(atom, name, span):
            entity = tensors.attribute(session, out, entity_of(atom), name, span, describe(atom))
        case Index(atom, items, span):
            entity = tensors.index(session, out, entity_of(atom), tensors.index_items(context, items), span)
        case IndexUpdate(atom, items, new, span):
            entity = tensors.index_update(
                session, out, entity_of(atom), tensors.index_items(context, items), entity_of(new), span
            )
        case MakeTuple(items, _):
            entity = Tuple(tuple(entity_of(a) for a in items))
        case Var() | Constant() | Global() | Static():
            entity = entity_of(value)
        case If():
            elaborate_if(session, context, targets, value, out)
            return
        case Loop():
            elaborate_loop(session, context, targets, value, out)
            return
        case ForEach():
            iteration.elaborate_for(session, context, targets, value, out)
            return
        case PatternMatch():
            matching.elaborate_match(session, context, targets, value, out)
            return
        case Lambda(function, _):
            defaults = [p.default for p in function.signature if isinstance(p.default, Var)]
            used = (*free_variables(function), *defaults)
            captured = {v: context.lookup(v) for v in used if _is_bound(context, v)}
            entity = LocalFunction(function, captured, out.slot(), context, function.name)
        case Unpack(atom, count, span):
            for target, part in zip(targets, unpack(session, out, entity_of(atom), count, span), strict=True):
                context.environment[target] = part
            return
        case Annotated(atom, annotation, span):
            entity = _annotated(session, context, out, entity_of(atom), annotation, span, targets)
        case Project(atom, index, span):
            entity = unpack(session, out, entity_of(atom), None, span)[index]
        case Call(function, arguments, span):
            entity = calls.apply(
                session, context, out, entity_of(function), [entity_of(a) for a in arguments], [], span, []
            )
        case RefNew(atom, span):
            typed = session.materialise(out, entity_of(atom), span)
            entity = session.bind(out, RefNew(typed.atom, span), RefType(typed.type), "ref", span)
        case RefRead(atom, span):
            entity = calls.read(session, out, entity_of(atom), span)
        case RefWrite(atom, new, span):
            session.rounds.store((atom, new), (entity_of(atom), entity_of(new)))
            calls.write(session, out, entity_of(atom), entity_of(new), span)
            entity = None
        case SetAttribute(atom, name, new, span):
            if name != "value":
                raise TypeCheckError(
                    f"the attribute {name!r} cannot be assigned", span, help="only `.value` of a reference can"
                )
            session.rounds.store((atom, new), (entity_of(atom), entity_of(new)))
            calls.write(session, out, entity_of(atom), entity_of(new), span)
            entity = None
        case Assert(atom, message, span):
            session.effect("assert", "may fail in an assertion", span)
            held = entity_of(atom)
            if isinstance(held, Typed) and held.known is False:
                raise texts.never_holds(message, span)
            condition = require_bool(session, out, held, span, "the condition of assert")
            out.items.append(Binding((), Assert(condition.atom, message, span)))
            entity = None
        case _:
            raise InternalError(f"the surface IR holds {type(value).__name__}")
    if targets:
        context.environment[targets[0]] = entity if entity is not None else Tuple(())
        if isinstance(value, OpCall | Apply) and isinstance(entity, Typed) and isinstance(entity.atom, Var):
            entity.atom.name = targets[0].name


def _is_bound(context: Context, var: Var) -> bool:
    current: Context | None = context
    while current is not None:
        if var in current.environment:
            return True
        current = current.outer
    return False


def describe(atom: Atom) -> str:
    """An operand as the user wrote it, for messages."""
    match atom:
        case Var(name, _, span) | Global(name, _, span):
            if span is not None and span.line == span.end_line:
                text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
                if 0 < len(text) <= 30:
                    return text
            return name
        case Static(value):
            return repr(value)
        case Constant(value):
            return str(value) if value.ndim == 0 else "constant"


def require_bool(session: Session, out: Output, entity: Entity, span: Span | None, what: str) -> Typed:
    """The entity as a rank-0 bool. Raises TypeMismatch."""
    if isinstance(entity, Object) and isinstance(entity.value, bool):
        import numpy as np

        constant = Constant(np.asarray(entity.value), span)
        return Typed(constant, constant.type, entity.value)
    if isinstance(entity, Typed) and isinstance(prune(entity.type), TupleType):
        entity = expand(session, out, entity, span)
    if isinstance(entity, Tuple):
        return comparisons.truth(len(entity.items) > 0, span)
    if isinstance(entity, Typed) and growing.is_growing(entity):
        entity = positions.is_not_empty(session, out, entity, span)
    if isinstance(entity, Number):
        raise TypeMismatch(f"{what} must be a bool, found the number {entity.value}", span, help="compare it: `n != 0`")
    typed = session.materialise(out, entity, span)
    found = resolve(typed.type)
    is_mask = isinstance(found, TensorType) and found.base == BOOL
    help = "compare with something: `x > 0`; or reduce: relay.any(x)"
    if is_mask:
        help = "reduce: relay.any(x), relay.all(x); elementwise, `and` and `or` are `(x > 0) & (y > 0)` and `|`"
    session.unify_at(typed.type, TensorType(BOOL, ()), span, what, help=help)
    return typed


def unpack(session: Session, out: Output, entity: Entity, count: int | None, span: Span | None) -> tuple[Entity, ...]:
    """The components of a tuple. Raises TypeCheckError if there are not `count`."""
    if isinstance(entity, Typed):
        type_ = prune(entity.type)
        if isinstance(type_, TensorType) and count is not None:
            from relay.typecheck.elaboration import tensors

            return tensors.unpack_rows(session, out, entity, count, span)
        if count is not None:
            parts = TupleType(tuple(session.solver.fresh(Kind.Type) for _ in range(count)))
            session.unify_at(entity.type, parts, span, "the unpacked value")
        entity = expand(session, out, entity, span)
    if not isinstance(entity, Tuple):
        raise TypeCheckError(f"{_kind(entity)} cannot be unpacked", span)
    if count is not None and len(entity.items) != count:
        raise TypeCheckError(f"expected {count} values to unpack, found {len(entity.items)}", span)
    return entity.items


def _kind(entity: Entity) -> str:
    return {"Number": "a number", "Object": "this Python object"}.get(type(entity).__name__, "this value")


def _annotated(
    session: Session,
    context: Context,
    out: Output,
    entity: Entity,
    annotation: Type,
    span: Span | None,
    targets: tuple[Var, ...],
) -> Entity:
    expected = annotation_type(session, context, annotation)
    name = targets[0].name if targets else "the value"
    if isinstance(entity, Number) and isinstance(expected, TensorType):
        return session.constant(out, entity, expected.base) if expected.shape == () else _mismatch(name, expected, span)
    if isinstance(expected, StackType) and growing.is_list(entity):
        entity = growing.as_growing(session, out, entity, span)
    typed = session.materialise(out, entity, span)
    session.unify_at(typed.type, expected, span, name)
    return entity


def _mismatch(name: str, expected: Type, span: Span | None) -> Entity:
    raise TypeMismatch(f"{name} must be {show(expected)}, found a number", span, help="use relay.full(shape, value)")


# ---- joins


class Join:
    """Where several paths meet with values: the arms of an `if`, the ways out of a loop."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self.session = session
        self.names = names
        self.paths: list[tuple[Output, tuple[Entity, ...], Span | None]] = []
        self._handed: list[tuple[Atom, ...]] = []

    def add(self, out: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        """One more path that arrives."""
        self.paths.append((out, entities, span))
        self._handed.append(self.session.handed)

    def close(
        self, end: Callable[[tuple[Atom, ...], Span | None], Yield | Exit]
    ) -> tuple[tuple[Var, ...], tuple[Entity, ...]]:
        """End every path's block. Returns the targets to bind and what each name means after the join."""
        targets: list[Var] = []
        atoms: list[list[Atom]] = [[] for _ in self.paths]
        merged = []
        count = len(self.paths[0][1]) if self.paths else 0
        for position in range(count):
            name = self.names[position] if position < len(self.names) else "value"
            places = [
                assigned_at(name, handed, position, span)
                for handed, (_, _, span) in zip(self._handed, self.paths, strict=True)
            ]
            try:
                column = [entities[position] for _, entities, _ in self.paths]
                merged.append(self._merge(name, column, targets, atoms, places))
            except (Consequence, RelayError) as error:
                self.session.report(error)
                merged.append(Failed())
        for (out, _, span), values in zip(self.paths, atoms, strict=True):
            out.terminator = end(tuple(values), span)
        return tuple(targets), tuple(merged)

    def _merge(
        self,
        name: str,
        entities: list[Entity],
        targets: list[Var],
        atoms: list[list[Atom]],
        places: Sequence[Span | None],
    ) -> Entity:
        if any(isinstance(e, Failed) for e in entities):
            raise Consequence
        first = entities[0]
        several = len(entities) > 1
        if isinstance(first, Number) and all(isinstance(e, Number) and _same_number(e, first) for e in entities):
            return first
        if isinstance(first, Object) and all(isinstance(e, Object) and e.value is first.value for e in entities):
            return first
        if several and isinstance(first, FUNCTIONS) and all(e is first for e in entities):
            return first
        entities = [
            expand(self.session, out, e, span) if isinstance(e, Typed) else e
            for e, (out, _, span) in zip(entities, self.paths, strict=True)
        ]
        first = entities[0]
        if all(map(growing.is_list, entities)) and len({_fixed_length(e) for e in entities}) > 1:
            entities = [
                growing.as_growing(self.session, out, e, span)
                for e, (out, _, span) in zip(entities, self.paths, strict=True)
            ]
        if isinstance(first, Tuple) and all(
            isinstance(e, Tuple) and len(e.items) == len(first.items) for e in entities
        ):
            columns = zip(*(e.items for e in entities if isinstance(e, Tuple)), strict=True)
            form = common_form(name, [e for e in entities if isinstance(e, Tuple)], places)
            return Tuple(tuple(self._merge(name, list(column), targets, atoms, places) for column in columns), form)
        typed = [self.session.materialise(out, e, span) for e, (out, _, span) in zip(entities, self.paths, strict=True)]
        for other, span in zip(typed[1:], places[1:], strict=True):
            growing.refuse_lengths(self.session, typed[0].type, other.type)
            try:
                self.session.solver.unify(typed[0].type, other.type)
            except Clash as clash:
                notes = clash_notes(clash, other.type, typed[0].type)
                earlier, later = (places[0], typed[0].type), (span, other.type)
                if later[0] is not None and earlier[0] is not None and later[0].line < earlier[0].line:
                    earlier, later = later, earlier
                    notes = clash_notes(clash, later[1], earlier[1])
                labels = (Label(earlier[0], f"here it is {shown(earlier[1])}"),) if earlier[0] else ()
                raise TypeMismatch(
                    f"{_said(name)} is {shown(earlier[1])} on one path and {shown(later[1])} on another",
                    later[0],
                    labels=labels,
                    notes=notes,
                ) from None
        target = self.session.variable(name, typed[0].type, self.paths[0][2])
        targets.append(target)
        for values, value in zip(atoms, typed, strict=True):
            values.append(value.atom)
        length = typed[0].length if all(t.length == typed[0].length for t in typed) else None
        return Typed(target, target.type or typed[0].type, length=length)


def _said(name: str) -> str:
    """A joined value in a message: the user's variable, or what the front end calls a conditional expression."""
    return "this expression" if name == "chosen" else name


def assigned_at(name: str, handed: Sequence[Atom], position: int, otherwise: Span | None) -> Span | None:
    """Where a variable got the value that a path hands on."""
    atom = handed[position] if position < len(handed) else None
    return atom.span if isinstance(atom, Var) and atom.name == name and atom.span is not None else otherwise


def _fixed_length(entity: Entity) -> int | None:
    """The number of items of a list that are known one by one; None for a list that grows."""
    return len(entity.items) if isinstance(entity, Tuple) else None


def common_form(name: str, tuples: Sequence[Tuple], spans: Sequence[Span | None]) -> Form | None:
    """The form that tuples share where paths meet. Raises TypeMismatch for records of different forms."""
    forms = {t.form for t in tuples if t.form is not None}
    named = [f for f in forms if f.names]
    if len(named) > 1 or (named and len(forms) > 1):
        raise TypeMismatch(
            f"{name} is a record with other fields on another path", spans[-1], help="use the same class and keys"
        )
    return next(iter(forms)) if len(forms) == 1 and all(t.form is not None for t in tuples) else None


def _same_number(a: Number, b: Number) -> bool:
    if isinstance(a, Size) or isinstance(b, Size):
        left, right = dim_of(a), dim_of(b)
        return left is not None and right is not None and follows_equal(left, right) is True
    if isinstance(a, Computed) or isinstance(b, Computed):
        return a is b
    return type(a.value) is type(b.value) and a.value == b.value


def assign_joined(
    session: Session,
    context: Context,
    targets: Sequence[Var],
    join: Join,
    entities: Sequence[Entity],
    failures: int,
) -> bool:
    """Note what targets mean after a join; False if no path arrives.

    Where mistakes (there were `failures` before) have cut all paths off, the program still goes on.
    """
    if join.paths:
        assign(context, targets, entities)
        return True
    assign(context, targets, [Failed()] * len(targets))
    return session.failures > failures


def assign(context: Context, targets: Sequence[Var], entities: Sequence[Entity]) -> None:
    """Note what surface targets mean."""
    for target, entity in zip(targets, entities, strict=True):
        context.environment[target] = entity


# ---- branches


def elaborate_if(session: Session, context: Context, targets: tuple[Var, ...], node: If, out: Output) -> None:
    """`if`. A condition that the checker knows chooses its arm; the other arms are not looked at."""
    join = Join(session, [t.name for t in targets])
    arms: list[tuple[Output, Output]] = []
    orelse: Block | None = None
    is_refused = False
    for arm in node.arms:
        condition_out, failures = Output() if arms else out, session.failures
        condition = _condition(session, context, arm.condition, condition_out, node.span)
        is_refused = is_refused or session.failures > failures
        known = is_constant_bool(condition)
        if (known is False and not condition_out.items) or (known is False and not arms):
            continue
        if known is True and (not arms or not condition_out.items):
            orelse = arm.body
            break
        if not arms:
            first, condition_out = condition, Output()
            condition_out.terminator = Yield((first.atom,), node.span)
        else:
            condition_out.terminator = Yield((condition.atom,), node.span)
        body = Output()
        with session.where_it_may_not_run():
            elaborate_block(session, context, arm.body, body, join.add)
        arms.append((condition_out, body))
    otherwise = orelse if orelse is not None else node.orelse
    if not arms:

        def direct(_: Output, entities: tuple[Entity, ...], __: Span | None) -> None:
            assign(context, targets, entities)

        elaborate_block(session, context, otherwise, out, direct)
        return
    last = Output()
    with session.where_it_may_not_run():
        elaborate_block(session, context, otherwise, last, join.add)
    if is_refused:  # what the arms give may be of other types only because the condition is
        assign(context, targets, [Failed()] * len(targets))
        return
    bound, entities = join.close(lambda atoms, span: Yield(atoms, span))
    if join.paths:
        assign(context, targets, entities)

    def build() -> If:
        return If(tuple(Arm(c.block(), b.block()) for c, b in arms), last.block(), node.span)

    out.items.append(Later(bound, build))


def _condition(session: Session, context: Context, block: Block, out: Output, span: Span | None) -> Typed:
    found: list[Typed] = []

    def on_yield(place: Output, entities: tuple[Entity, ...], at: Span | None) -> None:
        known = is_constant_bool(entities[0])
        try:
            typed = require_bool(session, place, entities[0], at or span, "a condition")
        except TypeMismatch as error:  # the arms can be checked all the same
            session.report(error)
            typed = session.constant_bool(span)
        found.append(typed if known is None else Typed(typed.atom, typed.type, known))

    elaborate_block(session, context, block, out, on_yield)
    if not found:
        raise Consequence
    return found[0]


# ---- loops


class Carried:
    """The parameters of a loop: their structure comes from the initial values and stays.

    A function is a parameter where the loop changes it; otherwise it stays known.
    """

    def __init__(self, session: Session, out: Output, node: Loop | ForEach, entities: Sequence[Entity]) -> None:
        self.session = session
        self.label = node.label
        self.span = node.span
        self.names = [p.name for p in node.parameters]
        self.parameters: list[Var] = []
        self.initial: list[Atom] = []
        self._kept = Kept(node)
        self._started: dict[object, Length | None] = {}  # by origin: the length with which a list enters the loop
        self._growth: dict[object, set[int | None]] = {}  # by origin: by how much a round makes it longer
        self.entities = tuple(
            self._start(out, name, e, (i,)) for i, (name, e) in enumerate(zip(self.names, entities, strict=True))
        )

    def _start(self, out: Output, name: str, entity: Entity, place: tuple[int, ...]) -> Entity:
        if isinstance(entity, Failed):
            return entity
        if isinstance(entity, Typed):
            entity = expand(self.session, out, entity, self.span)
        if (self.label, place) in self.session.decisions.growing:
            entity = growing.as_growing(self.session, out, entity, self.span)
        if isinstance(entity, Tuple):
            items = enumerate(entity.items)
            return Tuple(tuple(self._start(out, name, item, (*place, i)) for i, item in items), entity.form)
        if isinstance(entity, (Object, *FUNCTIONS)):
            is_function = not isinstance(entity, Object) or isinstance(entity.value, Operator)
            if not is_function or self._kept.keeps(place[0], place[1:]):
                return entity
        typed = self.session.materialise(out, entity, self.span)
        var = self.session.variable(name, typed.type, self.span)
        self.parameters.append(var)
        self.initial.append(typed.atom)
        if not growing.is_growing(typed):
            return Typed(var, typed.type)
        origin = object()
        self._started[origin], self._growth[origin] = typed.length, set()
        return Typed(var, typed.type, length=Length(origin, 0))

    def settled(self, entity: Entity, rounds: int | None) -> Entity:
        """An entity of the loop as what it is after it; `rounds`: their number, if it is known."""
        match entity:
            case Tuple(items, form):
                return Tuple(tuple(self.settled(i, rounds) for i in items), form)
            case Typed(atom, type_, known, Length(origin, more)) if origin in self._started:
                start, growth = self._started[origin], self._growth[origin]
                by = next(iter(growth)) if len(growth) == 1 else 0 if not growth else None
                if start is None or by is None or (by and rounds is None):
                    return Typed(atom, type_, known)
                return Typed(atom, type_, known, start.plus(by * (rounds or 0) + more))
            case _:
                return entity

    def _note_growth(self, expected: Typed, entity: Typed) -> None:
        assert expected.length is not None
        origin, length = expected.length.origin, entity.length
        self._growth[origin].add(length.more if length is not None and length.origin is origin else None)

    def fit(self, out: Output, entities: Sequence[Entity], span: Span | None) -> tuple[Atom, ...]:
        """The atoms of the parameters' next values. Raises TypeMismatch where one changes its type."""
        atoms: list[Atom] = []
        handed = self.session.handed
        for position, (name, expected, entity) in enumerate(zip(self.names, self.entities, entities, strict=True)):
            if isinstance(expected, Failed) or isinstance(entity, Failed):
                self.session.report(Consequence())
                continue
            try:
                place = assigned_at(name, handed, position, span)
                self._fit(out, name, expected, entity, place, atoms, (position,))
            except (Consequence, RelayError) as error:
                self.session.report(error)
        return tuple(atoms)

    def _fit(
        self,
        out: Output,
        name: str,
        expected: Entity,
        entity: Entity,
        span: Span | None,
        atoms: list[Atom],
        place: tuple[int, ...],
    ) -> None:
        if isinstance(entity, Typed):
            entity = expand(self.session, out, entity, span)
        match expected:
            case Typed():
                if growing.is_growing(expected):
                    entity = growing.as_growing(self.session, out, entity, span)
                    self._note_growth(expected, entity)
                typed = self.session.materialise(out, entity, span)
                growing.refuse_lengths(self.session, typed.type, expected.type)
                try:
                    self.session.solver.unify(typed.type, expected.type)
                except Clash as clash:
                    notes = clash_notes(clash, typed.type, expected.type)
                    labels = (
                        (Label(self.span, f"it enters the loop as {show(resolve(expected.type))}"),)
                        if self.span
                        else ()
                    )
                    raise TypeMismatch(
                        f"the loop changes the type of {name} from {show(resolve(expected.type))}"
                        f" to {show(resolve(typed.type))}",
                        typed.atom.span or span,
                        labels=labels,
                        notes=notes,
                        help="a loop's variables keep their types; start with the final shape and dtype",
                    ) from None
                atoms.append(typed.atom)
            case Tuple(items):
                if not isinstance(entity, Tuple) or len(entity.items) != len(items):
                    if growing.is_literal(expected) and growing.is_list(entity):
                        raise ListGrows((self.label, place))
                    raise TypeMismatch(
                        f"the loop changes the structure of the tuple {name}",
                        span,
                        help="a tuple or dict keeps its length; a list may grow: `xs.append(v)`",
                    )
                for i, (a, b) in enumerate(zip(items, entity.items, strict=True)):
                    self._fit(out, name, a, b, span, atoms, (*place, i))
            case _:
                same = entity is expected or (
                    isinstance(entity, Object) and isinstance(expected, Object) and entity.value is expected.value
                )
                if not same:
                    raise TypeCheckError(f"the loop changes {name}, which is no value at run time", span)


def elaborate_loop(session: Session, context: Context, targets: tuple[Var, ...], node: Loop, out: Output) -> None:
    """A `while`."""
    session.rounds.enter(node)
    carried = Carried(session, out, node, _entities(context, node.initial))
    label = LoopLabel(node.label.name)
    assign(context, node.parameters, carried.entities)
    join = Join(session, [t.name for t in targets])

    def on_next(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
        place.terminator = Next(label, carried.fit(place, entities, span), span)

    context.handlers[node.label] = Handler(label, on_next, join.add)
    body, failures = Output(), session.failures
    with session.where_it_may_not_run():
        elaborate_block(session, context, node.body, body, None)
    bound, entities = join.close(lambda atoms, span: Exit(label, atoms, span))
    entities = tuple(carried.settled(e, None) for e in entities)
    arrives = assign_joined(session, context, targets, join, entities, failures)

    def build() -> Loop:
        return Loop(label, tuple(carried.parameters), tuple(carried.initial), body.block(), None, node.span)

    out.items.append(Later(bound, build))
    if not arrives:
        out.terminator = Dead()
