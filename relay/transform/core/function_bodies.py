"""Specialization of one function body, from its bindings to its end.

if, match, exits of a loop        the same code on all paths: the environments are joined; otherwise a flow
loop parameter                       static while every `Next` brings the same code; otherwise the body is followed
                                     again with a flow there, which is remembered (`Frame.memory`)
reference, stack, data type          a flow for each function type in the type of the cell
call with a function in its result   the body in place; a call with a flow as result if it is recursive
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from relay.errors import CompileError, InternalError, Span
from relay.ir.builder import BlockBuilder, DeferredBinding
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Breakpoint,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackGet,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_atoms
from relay.ir.traverse import free_variables
from relay.ir.types import DataType, RefType, StackType, TupleType, Type
from relay.transform.analysis.graph import strong_components
from relay.transform.core.flows import Flows, atom_type
from relay.transform.core.frames import CallResolver, Frame, InlinedBody, ReturnTarget
from relay.transform.core.incoming_paths import End, IncomingPath, Join
from relay.transform.core.joins import LoopExits, Place, ValueJoins, type_of
from relay.transform.core.static_values import (
    DynamicValue,
    LambdaGroup,
    StaticValue,
    StaticValues,
    TupleValue,
    flatten,
    holds_function,
)


class BodySpecializer:
    """Follows bodies. `caller` makes what they call."""

    def __init__(self, static: StaticValues, flows: Flows, caller: CallResolver) -> None:
        self.static = static
        self.flows = flows
        self.caller = caller
        self.meeting = ValueJoins(static, flows)

    def body(self, function: Function, values: dict[Var, StaticValue], result: Type) -> tuple[Block, LoopLabel]:
        """The body of a function whose variables have these values, and its label."""
        label = LoopLabel(function.label.name)
        frame = Frame(dict(values), {}, {function.label: ReturnTarget(label, result)})
        return self._block(frame, function.body).block(), label

    # ---- values

    def _value(self, frame: Frame, atom: Atom) -> StaticValue:
        match atom:
            case Var():
                value = frame.values.get(atom)
                if value is None:
                    raise InternalError(f"{atom} is not in scope")
                return value
            case Constant() | Global():
                return self.static.atom(atom)
            case Static():
                raise InternalError("a surface atom reached specialization")
            case _:
                assert_never(atom)

    def _operand_atom(self, frame: Frame, atom: Atom) -> Atom:
        """The atom for an operand that is not a function."""
        value = self._value(frame, atom)
        if not isinstance(value, DynamicValue):
            raise InternalError(f"{atom!r} is a function, and an operand")
        return value.atom

    def _fresh_variable(self, frame: Frame, variable: Var, type_: Type | None = None) -> Var:
        copy = Var(variable.name, variable.type if type_ is None else type_, variable.span)
        frame.values[variable] = self.static.atom(copy)
        return copy

    # ---- joins

    def _close(self, frame: Frame, targets: tuple[Var, ...], join: Join, end: End) -> tuple[Var, ...]:
        """End the paths to a join. Binds `targets` to what met there, and returns the variables for it."""
        found: list[Var] = []
        atoms: list[list[Atom]] = [[] for _ in join.paths]
        for position, target in enumerate(targets):
            column = [path.values[position] for path in join.paths]
            if column:
                frame.values[target] = self.meeting.meet(target, type_of(target), column, join.paths, found, atoms)
            elif not self.flows.mentions(target.type):
                found.append(self._fresh_variable(frame, target))
        for path, values in zip(join.paths, atoms, strict=True):
            path.draft.terminator = end(tuple(values), path.span)
        return tuple(found)

    # ---- blocks

    def _block(self, frame: Frame, block: Block) -> BlockBuilder:
        out = BlockBuilder()
        self._bindings(frame, block.bindings, out)
        self._terminator(frame, block.terminator, out)
        return out

    def _arm(self, frame: Frame, block: Block, join: Join) -> BlockBuilder:
        frame.yields.append(join)
        made = self._block(frame, block)
        frame.yields.pop()
        return made

    def _condition(self, frame: Frame, block: Block) -> BlockBuilder:
        join = Join()
        made = self._arm(frame, block, join)
        for path in join.paths:
            path.draft.terminator = Yield(tuple(flatten(path.values)), path.span)
        return made

    def _terminator(self, frame: Frame, terminator: Terminator, out: BlockBuilder) -> None:
        match terminator:
            case Yield(atoms, span):
                frame.yields[-1].paths.append(IncomingPath(out, [self._value(frame, a) for a in atoms], span))
            case Exit(label, atoms, span):
                values = [self._value(frame, a) for a in atoms]
                leads = frame.labels[label]
                if isinstance(leads, ReturnTarget):
                    out.terminator = Exit(leads.label, (self.meeting.reify(values[0], leads.result, out, span),), span)
                elif leads.counted:
                    out.terminator = Exit(leads.label, self.meeting.carry(leads, values, out, span), span)
                else:
                    leads.exits.paths.append(IncomingPath(out, values, span))
            case Next(label, atoms, span):
                leads = frame.labels[label]
                assert isinstance(leads, LoopExits)
                values = [self._value(frame, a) for a in atoms]
                out.terminator = Next(leads.label, self.meeting.carry(leads, values, out, span), span)
            case Dead():
                out.terminator = terminator
            case _:
                assert_never(terminator)

    def _bindings(self, frame: Frame, bindings: Sequence[Binding], out: BlockBuilder) -> None:
        lambdas: dict[Var, Function] = {}
        for binding in bindings:
            if isinstance(binding.value, Lambda):
                lambdas[binding.targets[0]] = binding.value.function
                continue
            if lambdas:
                self._lambdas(frame, lambdas)
                lambdas = {}
            self._binding(frame, binding, out)
        self._lambdas(frame, lambdas)

    def _lambdas(self, frame: Frame, lambdas: dict[Var, Function]) -> None:
        """Bind consecutive lambdas, group by group, so that a closure captures no more than it needs."""
        free = {variable: free_variables(function) for variable, function in lambdas.items()}
        edges = {variable: [v for v in captured if v in lambdas] for variable, captured in free.items()}
        for component in strong_components(edges):
            members = {v: lambdas[v] for v in component}
            captured = tuple(dict.fromkeys(v for m in component for v in free[m] if v not in members))
            group = LambdaGroup(members, captured)
            environment = tuple(self._value(frame, v) for v in captured)
            for variable, function in members.items():
                frame.values[variable] = self.static.closure(function, group, environment)

    def _binding(self, frame: Frame, binding: Binding, out: BlockBuilder) -> None:
        value, targets = binding.value, binding.targets
        match value:
            case Var() | Constant() | Global():
                frame.values[targets[0]] = self._value(frame, value)
            case Call(function, arguments, span):
                self._call(frame, targets[0], function, [self._value(frame, a) for a in arguments], span, out)
            case MakeTuple(items) if holds_function(targets[0].type):
                frame.values[targets[0]] = self.static.make_tuple(tuple(self._value(frame, i) for i in items))
            case Project(whole, index) if isinstance(known := self._value(frame, whole), TupleValue):
                frame.values[targets[0]] = known.items[index]
            case Grad(function):
                frame.values[targets[0]] = self.static.gradient(self._value(frame, function), value)
            case If(arms, orelse, span):
                join = Join()
                chosen = [(self._condition(frame, a.condition), self._arm(frame, a.body, join)) for a in arms]
                otherwise = self._arm(frame, orelse, join)

                def build_if() -> If:
                    return If(tuple(Arm(c.block(), b.block()) for c, b in chosen), otherwise.block(), span)

                out.items.append(DeferredBinding(self._close(frame, targets, join, Yield), build_if))
            case Match(scrutinee, match_arms, span):
                self._match(frame, targets, self._operand_atom(frame, scrutinee), match_arms, span, out)
            case Loop():
                self._loop(frame, targets, value, out)
            case Lambda():
                raise InternalError("a lambda outside of its group")
            case Breakpoint():
                pass  # debuggers run the typed program
            case _:
                self._convert_container(frame, binding, out)

    def _convert_container(self, frame: Frame, binding: Binding, out: BlockBuilder) -> None:
        """Convert operations on functions in references, stacks and data types; operators and other effects."""
        value, targets = binding.value, binding.targets
        if not any(self.flows.mentions(t.type) for t in targets) and not isinstance(
            value, RefWrite | Construct | StackPush | StackSet
        ):
            made: Expr = map_atoms(value, lambda a: self._operand_atom(frame, a))
            out.items.append(Binding(tuple(self._fresh_variable(frame, t) for t in targets), made))
            return
        type_: Type
        match value:
            case RefNew(content, span):
                type_ = RefType(self._memoized_type(frame, binding, _content(type_of(targets[0]))))
                made = RefNew(self.meeting.reify(self._value(frame, content), type_.content, out, span), span)
            case RefWrite(reference, new, span):
                cell = self._operand_atom(frame, reference)
                content_type = _content(atom_type(cell))
                made = RefWrite(cell, self.meeting.reify(self._value(frame, new), content_type, out, span), span)
                out.items.append(Binding((), made))
                return
            case RefRead(reference, span):
                cell = self._operand_atom(frame, reference)
                type_, made = _content(atom_type(cell)), RefRead(cell, span)
            case StackNew(element, span):
                element = self._memoized_type(frame, binding, element)
                type_, made = StackType(element), StackNew(element, span)
            case StackPush(stack, new, span):
                whole = self._operand_atom(frame, stack)
                type_ = atom_type(whole)
                made = StackPush(whole, self.meeting.reify(self._value(frame, new), _content(type_), out, span), span)
            case StackSet(stack, index, new, span):
                whole = self._operand_atom(frame, stack)
                type_, place = atom_type(whole), self._operand_atom(frame, index)
                content = self.meeting.reify(self._value(frame, new), _content(type_), out, span)
                made = StackSet(whole, place, content, span)
            case StackPrefix(stack, length, span):
                whole = self._operand_atom(frame, stack)
                type_, made = atom_type(whole), StackPrefix(whole, self._operand_atom(frame, length), span)
            case StackGet(stack, index, span):
                whole = self._operand_atom(frame, stack)
                type_, made = _content(atom_type(whole)), StackGet(whole, self._operand_atom(frame, index), span)
            case Construct(definition, constructor, arguments, span):
                definition = self.flows.convert_definition(definition)
                fields = definition.constructors[definition.index(constructor)].fields
                pairs = zip((self._value(frame, a) for a in arguments), fields, strict=True)
                atoms = tuple(self.meeting.reify(v, t, out, span) for v, t in pairs)
                type_, made = DataType(definition), Construct(definition, constructor, atoms, span)
            case MakeTuple(items, span):
                atoms = tuple(self._operand_atom(frame, i) for i in items)
                type_, made = TupleType(tuple(atom_type(a) for a in atoms)), MakeTuple(atoms, span)
            case Project(whole, index, span):
                atom = self._operand_atom(frame, whole)
                known = atom_type(atom)
                assert isinstance(known, TupleType)
                type_, made = known.items[index], Project(atom, index, span)
            case _:
                raise InternalError(f"{type(value).__name__} gives a function")
        out.items.append(Binding((self._fresh_variable(frame, targets[0], type_),), made))

    def _memoized_type(self, frame: Frame, binding: Binding, type_: Type) -> Type:
        """The converted type of a cell; the same when its loop is followed again."""
        memory = frame.memory.setdefault(binding, {})
        made = memory.setdefault("type", None) or self.flows.convert(type_)
        memory["type"] = made
        return made  # type: ignore[return-value]

    def _match(
        self,
        frame: Frame,
        targets: tuple[Var, ...],
        scrutinee: Atom,
        arms: tuple[MatchArm, ...],
        span: Span | None,
        out: BlockBuilder,
    ) -> None:
        join = Join()
        type_ = atom_type(scrutinee)
        assert isinstance(type_, DataType)
        chosen = []
        for arm in arms:
            types = type_.definition.constructors[type_.definition.index(arm.constructor)].fields
            fields = tuple(self._fresh_variable(frame, f, t) for f, t in zip(arm.fields, types, strict=True))
            chosen.append((arm.constructor, fields, self._arm(frame, arm.body, join)))

        def build() -> Match:
            return Match(scrutinee, tuple(MatchArm(c, f, b.block()) for c, f, b in chosen), span)

        out.items.append(DeferredBinding(self._close(frame, targets, join, Yield), build))

    # ---- loops

    def _loop(self, frame: Frame, targets: tuple[Var, ...], loop: Loop, out: BlockBuilder) -> None:
        given = [self._value(frame, a) for a in loop.initial]
        types = tuple(type_of(p) for p in loop.parameters)
        memory: dict[Place, Type] = frame.memory.setdefault(loop, {})  # type: ignore[assignment]
        label = LoopLabel(loop.label.name)
        written = len(out.items)
        others = [ways.exits for ways in frame.labels.values() if isinstance(ways, LoopExits)]
        arrived = [len(join.paths) for join in others]
        while True:
            initial = [
                self.meeting.start(value, t, (i,), memory, out, loop.span)
                for i, (value, t) in enumerate(zip(given, types, strict=True))
            ]
            parameters: list[Var] = []
            carried = [self.meeting.rebind(p, v, parameters) for p, v in zip(loop.parameters, initial, strict=True)]
            frame.values.update(zip(loop.parameters, carried, strict=True))
            counter = None
            if loop.counter is not None:
                rounds = self._operand_atom(frame, loop.counter.count)
                axis, divergence = loop.counter.axis, loop.counter.divergence
                counter = Counter(self._fresh_variable(frame, loop.counter.index), rounds, axis, divergence)
            ways = LoopExits(label, Join(), types, carried, counter is not None, memory)
            frame.labels[loop.label] = ways
            body = self._block(frame, loop.body)
            if not ways.changed:
                break
            del out.items[written:]
            for join, count in zip(others, arrived, strict=True):
                del join.paths[count:]
        atoms = tuple(flatten(initial))
        if counter is None:
            results = self._close(frame, targets, ways.exits, lambda values, span: Exit(label, values, span))
        else:
            found: list[Var] = []
            for target, value in zip(targets, carried, strict=True):
                frame.values[target] = self.meeting.rebind(target, value, found)
            results = tuple(found)

        def build() -> Loop:
            return Loop(label, tuple(parameters), atoms, body.block(), counter, loop.span)

        out.items.append(DeferredBinding(results, build))

    # ---- calls

    def _call(
        self,
        frame: Frame,
        target: Var,
        function: Atom,
        arguments: list[StaticValue],
        span: Span | None,
        out: BlockBuilder,
    ) -> None:
        callee = self._value(frame, function)
        inlined = self.caller.inlined_body(callee, arguments) if holds_function(target.type) else None
        if inlined is not None:
            frame.values[target] = self._inline(frame, target, inlined, span, out)
            inlined.leave()
            return
        call, result = self.caller.call(callee, arguments, span, out)
        type_ = result if self.flows.mentions(target.type) else type_of(target)
        out.items.append(Binding((self._fresh_variable(frame, target, type_),), call))

    def _inline(
        self, outer: Frame, target: Var, inlined: InlinedBody, span: Span | None, out: BlockBuilder
    ) -> StaticValue:
        """The body of a function that returns a function, in place of the call."""
        function = inlined.function
        label, exits = LoopLabel(function.label.name), Join()
        memory: dict[object, dict[object, object]] = outer.memory.setdefault(target, {})  # type: ignore[assignment]
        frame = Frame(inlined.values, memory, {function.label: LoopExits(label, exits)})
        if inlined.returns_once:
            assert isinstance(function.body.terminator, Exit)
            self._bindings(frame, function.body.bindings, out)
            return self._value(frame, function.body.terminator.values[0])
        body = self._block(frame, function.body)
        if not exits.paths:
            raise CompileError(f"{function.name} never returns", span)
        results = self._close(frame, (target,), exits, lambda values, at: Exit(label, values, at))
        out.items.append(DeferredBinding(results, lambda: Loop(label, (), (), body.block(), None, span)))
        return frame.values[target]


def _content(type_: Type) -> Type:
    match type_:
        case RefType(content) | StackType(content):
            return content
        case _:
            raise InternalError(f"{type_} holds nothing")
