"""Blocks and branches: one case for each node of the surface IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import InternalError, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import Dim, settled
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
from relay.ir.facts import DimConstraint
from relay.ir.traverse import free_variables
from relay.ir.types import ANY, BOOL, Kind, RefType, StackType, TensorType, TupleType, Type, TypeId, prune, show
from relay.operator import Undetermined
from relay.typecheck.elaboration.abstract_values import (
    Computed,
    Consequence,
    Context,
    Entity,
    Failed,
    Later,
    LocalFunction,
    Number,
    Object,
    Output,
    Size,
    Tuple,
    Typed,
    is_constant_bool,
    size,
)
from relay.typecheck.elaboration.checker import Session
from relay.typecheck.elaboration.control_flow import recursive_results
from relay.typecheck.elaboration.control_flow.joins import Join, assign
from relay.typecheck.elaboration.diagnostics import unresolved_names
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, undecided
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_positions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent, size_conditions
from relay.typecheck.elaboration.expressions import comparisons
from relay.typecheck.elaboration.expressions.python_operators import apply_named
from relay.typecheck.elaboration.instances import annotation_type, expand
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.schemes import conditional_types, rank_polymorphism, stuck_terms
from relay.typecheck.elaboration.values import axis_names
from relay.typecheck.unification import Clash, resolve

OnYield = Callable[[Output, tuple[Entity, ...], "Span | None"], None]


def elaborate_block(session: Session, context: Context, block: Block, out: Output, on_yield: OnYield | None) -> None:
    """Elaborate a block into `out`. What its `yield` does is the caller's; `next` and `exit` are the handlers'.

    A binding with a mistake is reported, and elaboration goes on without what depends on it.
    """
    with session.scope(out) as depth, session.facts_of_block():
        _elaborate_block(session, context, block, out, on_yield, depth)


def _elaborate_block(
    session: Session, context: Context, block: Block, out: Output, on_yield: OnYield | None, depth: int
) -> None:
    for binding in block.bindings:
        session.hints.span = binding.value.span or session.hints.span
        opened = len(session.opened)
        if session.is_partial:
            stuck_terms.doubt(session, binding)
        try:
            elaborate_binding(session, context, binding, out)
            session.solver.run()
            if len(session.opened) > opened:
                session.doubtful.update(binding.targets)
            if session.generic:
                conditional_types.note(session, context, binding, len(session.opened) > opened)
        except (Consequence, RelayError, Undetermined, Clash) as error:
            error = undecided(error, session.hints.span)
            if session.generic and stuck_terms.is_open(session, context, binding, error):
                unresolved_names.report_operands(session, context, binding.value)
                stuck_terms.open_binding(session, context, binding)
                conditional_types.note(session, context, binding, True)
                continue
            if recursive_results.leave_open(session, context, binding, error):
                continue
            session.report(error.at(binding.value.span) if isinstance(error, RelayError) else error)
            unresolved_names.report(session, context, binding.value)
            assign(context, binding.targets, [Failed()] * len(binding.targets))
        if out.terminator is not None:  # a branch that the checker decided has left
            return
    try:
        _terminate(session, context, block, out, on_yield, depth)
    except (Consequence, RelayError, Undetermined, Clash) as error:
        session.report(undecided(error, session.hints.span))
        out.terminator = Dead()


def _terminate(
    session: Session, context: Context, block: Block, out: Output, on_yield: OnYield | None, depth: int
) -> None:
    if not isinstance(block.terminator, Dead):
        session.handed = block.terminator.values
    match block.terminator:
        case Yield(values, span):
            if on_yield is None:
                raise InternalError("a yield outside of an arm")
            session.escaping = session.made_since(depth)
            on_yield(out, handed_entities(context, values), span)
        case Next(label, values, span):
            handler = context.handlers[label]
            assert handler.on_next is not None
            session.escaping = session.made_since(handler.depth)
            entities = handed_entities(context, values)
            session.rounds.hand_on(block.terminator, entities)
            handler.on_next(out, entities, span)
        case Exit(label, values, span):
            handler = context.handlers[label]
            depth = handler.depth if handler.exit_depth is None else handler.exit_depth
            session.escaping = session.made_since(depth)
            handler.on_exit(out, handed_entities(context, values), span)
        case Dead():
            out.terminator = Dead()


def handed_entities(context: Context, atoms: Sequence[Atom]) -> tuple[Entity, ...]:
    """What the operands of control flow mean: of a `yield`, `next` or `exit`, or where a loop starts. Some may be
    Failed."""
    return tuple(context.lookup(atom) if isinstance(atom, Var) else atom_entity(context, atom) for atom in atoms)


def atom_entity(context: Context, atom: Atom) -> Entity:
    """What a surface atom means. Raises Consequence if a mistake left it without a meaning."""
    from relay.typecheck.elaboration.values.objects import object_entity, resolve_name

    match atom:
        case Var():
            return context.value(atom)
        case Constant():
            return Typed(atom, atom.type)
        case Static(value, span):
            return object_entity(value, span)
        case Global(name, _, span):
            if (dim := _dim_variable(context, context.scope.resolve(name))) is not None:
                return size(dim, span)
            return resolve_name(context.scope, name, span, context.names())


def _dim_variable(context: Context, value: object) -> Dim | None:
    """The size that a variable of the annotations has here; None for everything else."""
    if not isinstance(value, TypeId) or value.kind is not Kind.Dim or value not in context.annotated:
        return None
    return settled(context.annotated[value])  # type: ignore[arg-type]


def elaborate_binding(session: Session, context: Context, binding: Binding, out: Output) -> None:
    """Elaborate one binding: write what exists at run time, and note what its targets mean."""
    from relay.typecheck.elaboration.control_flow import iteration, loops
    from relay.typecheck.elaboration.dynamic_shapes import masks
    from relay.typecheck.elaboration.expressions import calls
    from relay.typecheck.elaboration.patterns import matching
    from relay.typecheck.elaboration.values import item_updates, tensors

    targets, value = binding.targets, binding.value
    entity: Entity | None

    def entity_of(atom: Atom) -> Entity:
        return atom_entity(context, atom)

    match value:
        case OpCall(name, arguments, attributes, span):
            operands = [entity_of(a) for a in arguments]
            described = [describe(a) for a in arguments]
            entity = apply_named(session, out, name, operands, dict(attributes), span, described)
        case Apply(function, arguments, keywords, span):
            callee = entity_of(function)
            named = [(k, entity_of(a)) for k, a in keywords]
            described = [describe(a) for a in arguments]
            given = [entity_of(a) for a in arguments]
            session.rounds.store(arguments, given)
            entity = calls.apply(session, context, out, callee, given, named, span, described, describe(function))
        case Attribute(atom, name, span):
            entity = tensors.attribute(session, out, entity_of(atom), name, span, describe(atom))
        case Index(atom, items, span, updated):
            whole, subscript = entity_of(atom), tensors.index_items(context, items)
            entity = masks.chosen(session, out, whole, subscript, span) if updated else None
            if entity is None:
                try:
                    entity = tensors.index(session, out, whole, subscript, span)
                except SchemeOnly:
                    entity = (
                        rank_polymorphism.indexed_at_any_rank(session, whole, subscript, span)
                        if session.generic
                        else None
                    )
                    if entity is None:
                        raise
        case IndexUpdate(atom, items, new, span):
            entity = item_updates.index_update(
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
            loops.elaborate_loop(session, context, targets, value, out)
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
            around = session.active[-1] if session.active else None
            sizes = session.sizes_in_scope()
            entity = LocalFunction(function, captured, out.slot(), sizes, context, function.name, inside=around)
            session.unseen_functions.setdefault(id(function), (entity, value))
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
            typed = session.materialise(
                out, data_dependent.packed(session, out, entity_of(atom), None, None, span), span
            )
            entity = session.bind(out, RefNew(typed.atom, span), RefType(typed.type), "ref", span)
            session.made_reference(entity.atom)
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
                raise formatting.never_holds(message, span)
            condition = require_bool(session, out, held, span, "the condition of assert")
            out.items.append(Binding((), Assert(condition.atom, message, span)))
            if (said := size_conditions.of(session, condition)) is not None:
                session.keep_knowing(said.holds)
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
    if isinstance(entity, Typed) and dynamic_lists.is_growing(entity):
        entity = list_positions.is_not_empty(session, out, entity, span)
    if isinstance(entity, Number):
        number = entity.dim if isinstance(entity, Size) else None if isinstance(entity, Computed) else entity.value
        text = "a number" if number is None else f"the number {number}"
        raise TypeMismatch(f"{what} must be a bool, found {text}", span, help="compare it: `n != 0`")
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
            from relay.typecheck.elaboration.values import tensors

            return tensors.unpack_rows(session, out, entity, count, span)
        if count is not None and dynamic_lists.is_growing(entity):
            from relay.typecheck.elaboration.dynamic_lists import list_items

            known = dynamic_lists.count(entity)
            if known is not None and known != count:
                raise TypeCheckError(f"expected {count} values to unpack, found {known}", span)
            return list_items.unpacked(session, out, entity, count, 0, False, span)
        if count is not None:
            parts = TupleType(tuple(session.solver.fresh(Kind.Type) for _ in range(count)))
            session.unify_at(entity.type, parts, span, "the unpacked value")
        entity = expand(session, out, entity, span)
    if not isinstance(entity, Tuple):
        raise TypeCheckError(f"{_kind(entity)} cannot be unpacked", span)
    if count is not None and len(entity.items) != count:
        help = "write a name for each value, or one star: `a, *rest = t`"
        raise TypeCheckError(f"expected {count} values to unpack, found {len(entity.items)}", span, help=help)
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
    if isinstance(expected, StackType) and dynamic_lists.is_list(entity):
        entity = dynamic_lists.as_growing(session, out, entity, span, annotation)
    entity = data_dependent.narrowed(session, out, entity, expected, name, span)
    typed = session.materialise(out, entity, span)
    session.unify_at(typed.type, expected, span, name)
    entity = axis_names.annotated(entity, expected)
    if isinstance(annotation, TensorType) and ANY in annotation.shape:
        axes = [axis for axis, dim in enumerate(annotation.shape) if dim is ANY]
        typed = session.materialise(out, entity, span)
        return data_dependent.opened(session, out, data_dependent.widened(session, out, typed, axes, span), span)
    return entity


def _mismatch(name: str, expected: Type, span: Span | None) -> Entity:
    raise TypeMismatch(f"{name} must be {show(expected)}, found a number", span, help="use relay.full(shape, value)")


def elaborate_if(session: Session, context: Context, targets: tuple[Var, ...], node: If, out: Output) -> None:
    """`if`. A condition that the checker knows chooses its arm; the other arms are not looked at."""
    join = Join(session, [t.name for t in targets])
    join.of_conditions = _is_and_or(node)
    arms: list[tuple[Output, Output]] = []
    orelse: Block | None = None
    is_refused, by_sizes, by_call, decided = False, False, False, True
    known_of_sizes: list[DimConstraint] = []  # since the arms before are not taken
    paths: list[list[size_conditions.Path]] = [[] for _ in targets]

    def arriving(holds: Sequence[DimConstraint], decided: bool) -> OnYield:
        def add(place: Output, entities: tuple[Entity, ...], span: Span | None) -> None:
            join.add(place, entities, span)
            for ways, entity in zip(paths, entities, strict=False):
                ways.append(size_conditions.Path(tuple(holds), entity, decided))

        return add

    for arm in node.arms:
        condition_out, failures = Output() if arms else out, session.failures
        behind = size_conditions.behind(session, known_of_sizes, by_sizes, bool(arms))
        with behind, conditional_types.arm(session, by_call):
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
        by_call = by_call or conditional_types.decides(session, arm.condition)
        said = size_conditions.of(session, condition)
        decided, by_sizes = (
            decided and said is not None and said.decided,
            by_sizes or (said is not None and said.decided),
        )
        holds = known_of_sizes if said is None else [*known_of_sizes, *said.holds]
        with size_conditions.arm(session, holds, by_sizes), conditional_types.arm(session, by_call):
            elaborate_block(session, context, arm.body, body, arriving(holds, decided))
        if said is not None:
            known_of_sizes += said.fails
        arms.append((condition_out, body))
    otherwise = orelse if orelse is not None else node.orelse
    if not arms:

        def direct(_: Output, entities: tuple[Entity, ...], __: Span | None) -> None:
            assign(context, targets, entities)

        elaborate_block(session, context, otherwise, out, direct)
        return
    last = Output()
    with size_conditions.arm(session, known_of_sizes, by_sizes), conditional_types.arm(session, by_call):
        elaborate_block(session, context, otherwise, last, arriving(known_of_sizes, decided))
    if is_refused:  # what the arms give may be of other types only because the condition is
        assign(context, targets, [Failed()] * len(targets))
        return
    join.by_sizes, join.by_call = by_sizes and session.generic, by_call
    bound, entities = join.close(lambda atoms, span: Yield(atoms, span))
    if any(not isinstance(b.terminator, Yield) for b in (*(b for _, b in arms), last)):
        session.may_have_ended = True
    if known_of_sizes and all(b.terminator is not None and not isinstance(b.terminator, Yield) for _, b in arms):
        session.keep_knowing(known_of_sizes)  # what follows runs only where no arm was taken

    def build() -> If:
        return If(tuple(Arm(c.block(), b.block()) for c, b in arms), last.block(), node.span)

    out.items.append(Later(bound, build))
    if join.paths:
        entities = tuple(size_conditions.joined(e, ways) for e, ways in zip(entities, paths, strict=True))
        assign(context, targets, [data_dependent.all_opened(session, out, e, node.span) for e in entities])
        for entity, ways in zip(entities, paths, strict=False):
            size_conditions.note_joined(session, entity, ways)


def _is_and_or(node: If) -> bool:
    """Whether this is `a and b` or `a or b`: in one arm the first operand decides, and the result stands for it."""
    first = node.arms[0]
    ends = (first.body.terminator, node.orelse.terminator)
    results = [end.values[:1] for end in ends if isinstance(end, Yield)]
    at = first.condition.terminator.span if isinstance(first.condition.terminator, Yield) else None
    return any(isinstance(v, Constant) and v.span is not None and v.span == at for values in results for v in values)


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
