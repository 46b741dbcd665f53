"""The reversal of one block, binding by binding, from the last to the first.

Each rule takes the cotangent of what its binding binds and adds to those of what it reads. It returns the forward
bindings that take the binding's place: usually itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, assert_never

from relay.ad.activity import Activity
from relay.ad.branches import reverse_choice, reverse_tail
from relay.ad.cotangents import (
    Cotangent,
    Cotangents,
    fill_attributes,
    pack,
    pack_type,
    primed_constructor,
    type_of,
    unpack,
)
from relay.ad.interface import Interface
from relay.ad.lifting import holds_references
from relay.ad.loops import reverse_loop
from relay.ad.references import References, reverse_new, reverse_read, reverse_write
from relay.ad.rules import barrier, reverse_custom
from relay.ad.scopes import UNNAMED, Scope
from relay.ad.shadows import Sweep
from relay.ad.sizes import pull_back_ascription
from relay.ad.tapes import Plan, Seeds
from relay.errors import DifferentiationError, InternalError, RelayError
from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    CustomGradient,
    Dead,
    Exit,
    Expr,
    Extent,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    OpCall,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Var,
    Yield,
)
from relay.ir.traverse import bound_variables, operands, walk
from relay.ir.types import INT64, BaseType, DataDefinition, DataType, StackType, TensorType, TupleType, Type, scalar
from relay.operator import Emitter, Operator, Value, lookup


class Callee(Protocol):
    """The forward and backward versions of a called function. `returned`: the types of the backward one's results;
    `kept`: the parameters whose values it takes again."""

    @property
    def forward(self) -> Global: ...
    @property
    def backward(self) -> Global: ...
    @property
    def tape(self) -> Type: ...
    @property
    def result(self) -> Type: ...
    @property
    def cotangent_types(self) -> tuple[Type, ...]: ...
    @property
    def invariants(self) -> tuple[int, ...]: ...


class ModuleContext(Protocol):
    """The parts of a module's reversal that the reversal of a function needs."""

    cotangents: Cotangents
    interface: Interface
    definitions: list[DataDefinition]

    def is_effect(self, expression: Expr) -> bool:
        """True if an expression of backward code changes a cell."""
        ...

    def fresh_name(self, name: str) -> str:
        """A name for a function or data type that is not taken."""
        ...

    def callee(
        self,
        name: str,
        active: tuple[int, ...],
        paired: bool,
        seeded: tuple[bool, ...],
        again: tuple[bool, ...] | None = None,
        slot: str | None = None,
    ) -> Callee:
        """The two versions of a function, differentiated with respect to these parameters.

        With `paired` its result holds references with cotangents; with a `slot` these are shadows instead of pairs;
        with `again` the forward version prints nothing, and the backward version takes only those cotangents so far for
        which it is true.
        """
        ...

    def function(self, name: str) -> Function:
        """A finished function."""
        ...

    def next_number(self) -> int:
        """A number for a call that is computed again."""
        ...


class Reversal:
    """The reversal of one function."""

    def __init__(
        self, surroundings: ModuleContext, references: References, sweep: Sweep | None, body: Block, repeated: bool
    ) -> None:
        self.surroundings = surroundings
        self.references = references
        self.sweep = sweep
        self.repeated = repeated
        self.cotangents = surroundings.cotangents
        self.interface = surroundings.interface
        self.activity = Activity(body, self.cotangents.exists, references.holds)
        self.paired: set[Atom] = set()  # the variables that hold references with cotangents
        # The stacks that a loop around fills, each with the cotangent of the element that the round pushes.
        self.entries: dict[Var, Atom | None] = {}

    def fresh_name(self, name: str) -> str:
        return self.surroundings.fresh_name(name)

    def define(self, definition: DataDefinition) -> None:
        self.surroundings.definitions.append(definition)

    def is_tracked(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and atom in self.activity.tracked

    def accumulate(self, scope: Scope, atom: Atom, cotangent: Cotangent) -> None:
        if isinstance(atom, Var) and atom in self.activity.tracked:
            scope.accumulate(atom, cotangent)

    def track(self, inputs: Sequence[Var], results: Sequence[Atom], linked: Iterable[Sequence[Var]] = ()) -> None:
        """Find what the derivative of the results with respect to the inputs needs, and give pairs their types. Of the
        `linked` variables, each list may hold the same references."""
        for references in linked:
            self.activity.link(references)
        self.activity.track(inputs, results)
        for var in self.activity.tracked:
            if self.references.holds(type_of(var)):
                self.paired.add(var)
                var.type = self.references.paired_type(type_of(var))

    def is_effect(self, expression: Expr) -> bool:
        return self.surroundings.is_effect(expression)

    def has_effect(self, binding: Binding) -> bool:
        if not self.paired:
            return False
        for inner in walk(Block((binding,), Dead())):
            if any(a in self.paired for a in (*inner.targets, *bound_variables(inner.value), *operands(inner.value))):
                return True
        return False

    def block(self, block: Block, scope: Scope, seeds: Seeds) -> Plan:
        for value, cotangent in _ends(block, seeds):
            self.accumulate(scope, value, cotangent)
        bindings = block.bindings
        pieces: list[list[Binding]] = []
        tail, last = None, tail_branch(block)
        if last is not None:
            before, tail = reverse_tail(self, last, scope, seeds)
            pieces.append(before)
            bindings = bindings[:-1]
        for binding in reversed(bindings):
            pieces.append(self._binding(binding, scope))
        return Plan([b for piece in reversed(pieces) for b in piece], block.terminator, tail)

    def _binding(self, binding: Binding, scope: Scope) -> list[Binding]:
        expression = binding.value
        scope.emitter.span = getattr(expression, "span", None)
        match expression:
            case OpCall():
                self._operator(expression, binding.targets[0], scope)
            case Var() | Constant():
                self.accumulate(scope, expression, scope.take(binding.targets[0]))
            case MakeTuple(items):
                cotangent = scope.take(binding.targets[0])
                if isinstance(cotangent, tuple):
                    for item, part in zip(items, cotangent, strict=True):
                        self.accumulate(scope, item, part)
            case Project(value, index):
                cotangent, type_ = scope.take(binding.targets[0]), type_of(value)
                assert isinstance(type_, TupleType)
                if cotangent is not None:
                    parts = tuple(cotangent if i == index else None for i in range(len(type_.items)))
                    self.accumulate(scope, value, parts)
            case Construct(definition):
                self._construct(expression, scope.take(binding.targets[0]), scope)
                if binding.targets[0] in self.paired:
                    paired = self.references.paired_definition(definition)
                    same = Construct(paired, expression.constructor, expression.arguments, expression.span)
                    return [Binding(binding.targets, same)]
            case If() | Match():
                return reverse_choice(self, binding, scope)
            case Loop():
                return reverse_loop(self, binding, scope)
            case Call():
                return self._call(binding, expression, scope)
            case StackPush():
                return self._push(binding, expression, scope)
            case StackSet(stack) | StackPrefix(stack):
                if scope.take(binding.targets[0]) is not None:  # the program's own stacks have cells, which have none
                    raise InternalError("the cotangent of a stack of which a part was changed")
            case StackGet(stack):
                self._get(stack, scope.take(binding.targets[0]), binding.targets[0], scope)
            case StackNew(element):
                scope.take(binding.targets[0])
                if binding.targets[0] in self.paired:
                    paired_element = self.references.paired_type(element)
                    return [Binding(binding.targets, StackNew(paired_element, expression.span))]
            case Ascribe(value):
                cotangent = scope.take(binding.targets[0])
                if cotangent is not None and self.is_tracked(value):
                    assert not isinstance(cotangent, tuple)
                    self.accumulate(scope, value, pull_back_ascription(scope.emitter, cotangent, type_of(value)))
            case StackLength() | Extent() | BindDim() | AxisSize() | Assert() | Print() | Shadow():
                pass
            case RefNew():
                return reverse_new(self, binding, expression, scope)
            case RefRead():
                return reverse_read(self, binding, expression, scope)
            case RefWrite():
                return reverse_write(self, binding, expression, scope)
            case _:
                if any(scope.take(target) is not None for target in binding.targets):
                    raise InternalError(f"{type(expression).__name__} has no derivative")
        return [binding]

    # ---- operators

    def _operator(self, call: OpCall, target: Var, scope: Scope) -> None:
        """a_i' += rule_i(a, v, v')"""
        seed = scope.take(target)
        if seed is None or not any(self.is_tracked(a) for a in call.arguments):
            return
        assert not isinstance(seed, tuple)
        operator, emitter = lookup(call.operator), scope.emitter
        if operator.gradient is None:
            raise self._no_gradient(operator, call)
        values = [emitter.value(a) for a in call.arguments]
        attributes = {**operator.attributes, **call.attributes}
        start = len(emitter.bindings)
        try:
            gradients = operator.cotangents(values, emitter.value(target), emitter.value(seed), attributes)
        except RelayError as error:
            raise error.with_span(call.span) from None
        emitter.bindings[start:] = [_without_operands(b, emitter) for b in emitter.bindings[start:]]
        emitted = {b.targets[0]: b.value for b in emitter.bindings[start:]}
        for operand, gradient in zip(values, gradients, strict=True):
            if gradient is not None and self.is_tracked(operand.atom):
                part, of = gradient.atom, operand.atom
                if part in emitted and isinstance(part, Var) and isinstance(of, Var) and part.name == UNNAMED:
                    part.name = f"d_{of.name}"
                self._add_gradient(scope, operand, gradient, emitted)

    def _add_gradient(self, scope: Scope, operand: Value, gradient: Value, emitted: Mapping[Var, Expr]) -> None:
        """a' += gradient, in one step where the gradient itself is a sum into zeros, as that of an indexed read."""
        atom = operand.atom
        assert isinstance(atom, Var)
        before = scope.current_cotangent(atom)
        call = emitted.get(gradient.atom) if isinstance(gradient.atom, Var) else None
        if isinstance(before, Var) and isinstance(call, OpCall):
            into = _accumulating_call(call, before, emitted)
            if into is not None:
                scope.known[atom] = scope.emitter.bind(into, operand.type, f"d_{atom.name}").atom
                return
        part = _sum_to(gradient, operand).atom
        if part is not gradient.atom and isinstance(part, Var) and part.name == UNNAMED:
            part.name = f"d_{atom.name}"
        self.accumulate(scope, atom, part)

    def _no_gradient(self, operator: Operator, call: OpCall) -> DifferentiationError:
        reason = f": {operator.no_gradient}" if operator.no_gradient else ""
        source = next(a for a in call.arguments if self.is_tracked(a))
        path = [name for name, _ in itertools.groupby(v.name for v in self.activity.path(source))]
        through = f" through {' -> '.join(path[1:])}" if len(path) > 1 else ""
        note = (f"the result depends on {path[0]}{through}, which {operator.name} reads",) if path else ()
        help = f"give it a gradient, or make it a constant: `relay.stop_gradient({operator.name}(..))`"
        return DifferentiationError(f"{operator.name} has no gradient{reason}", call.span, notes=note, help=help)

    # ---- data and stacks

    def _construct(self, expression: Construct, cotangent: Cotangent, scope: Scope) -> None:
        """a_i' += field(v', i, C)"""
        if cotangent is None or not any(self.is_tracked(a) for a in expression.arguments):
            return
        assert isinstance(cotangent, Var)
        primed = type_of(cotangent)
        assert isinstance(primed, DataType)
        name = primed_constructor(expression.constructor)
        types = [t for a in expression.arguments for t in self.cotangents.leaves(type_of(a))]
        arms = []
        for constructor in primed.definition.constructors:
            fields = tuple(Var("field", t) for t in constructor.fields)
            emitter = Emitter(expression.span)
            values: Iterable[Atom] = fields
            if constructor.name != name:
                values = [z for a in expression.arguments for z in self.cotangents.zeros(emitter, type_of(a), a)]
            arms.append(MatchArm(constructor.name, fields, Block(tuple(emitter.bindings), Yield(tuple(values)))))
        targets = [Var("dfield", t) for t in types]
        scope.emitter.emit(tuple(targets), Match(cotangent, tuple(arms), expression.span))
        for argument in expression.arguments:
            leaves = [targets.pop(0) for _ in self.cotangents.leaves(type_of(argument))]
            self.accumulate(scope, argument, self.cotangents.unflatten(leaves, type_of(argument)))

    def _push(self, binding: Binding, push: StackPush, scope: Scope) -> list[Binding]:
        """v' += get(s1', len(s0)); s0' += s1', of which nobody will read the entries above"""
        cotangent = scope.take(binding.targets[0])
        assert isinstance(push.stack, Var)
        if push.stack in self.entries:
            entry = self.entries[push.stack]
            if entry is not None:
                self._unpack_entry(scope, push.value, entry)
            return [binding]
        if cotangent is None:
            return [binding]
        assert isinstance(cotangent, Var)
        position = Var("position", scalar(INT64))
        if self.is_tracked(push.value):
            type_ = pack_type(self.cotangents.leaves(type_of(push.value)))
            entry = scope.emitter.bind(StackGet(cotangent, position, push.span), type_, "dentry").atom
            self._unpack_entry(scope, push.value, entry)
        self.accumulate(scope, push.stack, cotangent)
        return [Binding((position,), StackLength(push.stack, push.span)), binding]

    def _unpack_entry(self, scope: Scope, value: Atom, entry: Atom) -> None:
        leaves = unpack(scope.emitter, entry, self.cotangents.leaves(type_of(value)))
        self.accumulate(scope, value, self.cotangents.unflatten(leaves, type_of(value)))

    def _get(self, stack: Atom, cotangent: Cotangent, target: Var, scope: Scope) -> None:
        """s' := push(s', v')

        Stacks are tapes: one loop reads all entries, each once, from the last to the first. Backwards, the cotangents
        of the entries come from the first to the last.
        """
        if not self.is_tracked(stack):
            return
        assert isinstance(stack, Var)
        types = self.cotangents.leaves(type_of(target))
        if not types:
            return
        dense = self.cotangents.dense(scope.emitter, cotangent, type_of(target), target)
        so_far = scope.current_cotangent(stack)
        if so_far is None:
            element = pack_type(types)
            so_far = scope.emitter.bind(StackNew(element), StackType(element), "dtape").atom
        assert isinstance(so_far, Var)
        entry = pack(scope.emitter, dense)
        scope.known[stack] = scope.emitter.bind(StackPush(so_far, entry), type_of(so_far), "dtape").atom

    # ---- calls

    def _call(self, binding: Binding, call: Call, scope: Scope) -> list[Binding]:
        """(v, t) = f_f(a..);  a' := f_b(t, v', a'..)"""
        target = binding.targets[0]
        seed = scope.take(target)
        active = tuple(i for i, a in enumerate(call.arguments) if self.is_tracked(a))
        paired = target in self.paired
        if not paired and (seed is None or not active) and not any(a in self.paired for a in call.arguments):
            return [binding]
        assert isinstance(call.function, Global)
        rule = self.surroundings.function(call.function.name).rule
        if isinstance(rule, CustomGradient):
            return reverse_custom(self, binding, call, rule, seed, scope, self.surroundings.function)
        if rule is not None and not any(holds_references(type_of(a)) for a in call.arguments):
            seeded, ends = self._ends(scope, seed, target)
            moved = self._move(call, active, scope)
            known = tuple(leaf is not None for leaf in moved)
            callee = self.surroundings.callee(call.function.name, active, False, seeded, known, self.references.slot)
            both_type = TupleType((callee.result, callee.tape))
            arguments = call.arguments
            if scope.outer is None:
                number = self.surroundings.next_number()
                arguments = tuple(
                    barrier(scope.emitter, a, number) if i in active else a for i, a in enumerate(arguments)
                )
            again = scope.emitter.bind(Call(callee.forward, arguments, call.span), both_type, "again").atom
            tape = scope.emitter.bind(Project(again, 1, call.span), callee.tape, "tape").atom
            given = [leaf for leaf in moved if leaf is not None]
            self._pull(call, callee, [tape, *ends, *given], active, scope)
            return [binding]
        seeded, ends = self._ends(scope, seed, target)
        callee = self.surroundings.callee(call.function.name, active, paired, seeded, slot=self.references.slot)
        forward, tape = _forward(callee, target, call)
        before = iter(self._move(call, active, scope))
        given = []
        for position in active:
            type_ = type_of(call.arguments[position])
            leaves = [None if isinstance(t, StackType) else next(before) for t in self.cotangents.leaves(type_)]
            dense = self._dense(scope, self.cotangents.unflatten(leaves, type_), type_, None)
            given += [a for a in dense if not isinstance(type_of(a), StackType)]
        self._pull(call, callee, [tape, *ends, *given], active, scope)
        return forward

    def effects(self, binding: Binding, seed: Cotangent, scope: Scope) -> list[Binding]:
        """The forward bindings of a call of which only what it does to references is reversed; and what is found there,
        if there is a seed for that."""
        call, target = binding.value, binding.targets[0]
        assert isinstance(call, Call) and isinstance(call.function, Global)
        active = tuple(i for i, a in enumerate(call.arguments) if a in self.paired)
        if not active:
            return [binding]
        seeded, ends = self._ends(scope, seed, target)
        paired = self.references.holds(type_of(target))
        callee = self.surroundings.callee(call.function.name, active, paired, seeded, slot=self.references.slot)
        forward, tape = _forward(callee, target, call)
        types = [type_of(call.arguments[position]) for position in active]
        zeros = [a for t in types for a in self._dense(scope, None, t, None) if not isinstance(type_of(a), StackType)]
        self._backward(call, callee, [tape, *ends, *zeros], scope)
        return forward

    def _ends(self, scope: Scope, seed: Cotangent, target: Var) -> tuple[tuple[bool, ...], list[Atom]]:
        """The cotangents of a call's result that are not known to be zero, as flags and values. Those of stacks have
        its length."""
        type_ = type_of(target)
        types, leaves = self.cotangents.leaves(type_), self.cotangents.flatten(seed, type_)
        seeded = tuple(leaf is not None or isinstance(t, StackType) for leaf, t in zip(leaves, types, strict=True))
        if not any(isinstance(t, StackType) for t in types):
            return seeded, [leaf for leaf in leaves if leaf is not None]
        dense = self._dense(scope, seed, type_, target)
        return seeded, [leaf for leaf, known in zip(dense, seeded, strict=True) if known]

    def _dense(self, scope: Scope, cotangent: Cotangent, type_: Type, like: Atom | None) -> list[Atom]:
        return self.cotangents.dense(scope.emitter, cotangent, type_, like)

    def _move(self, call: Call, active: tuple[int, ...], scope: Scope) -> list[Atom | None]:
        """The leaves of the active arguments' cotangents so far, but for stacks. They move into the callee."""
        moved: list[Atom | None] = []
        for position in active:
            argument = call.arguments[position]
            assert isinstance(argument, Var)
            type_ = type_of(argument)
            leaves = self.cotangents.flatten(scope.current_cotangent(argument), type_)
            for leaf, leaf_type in zip(leaves, self.cotangents.leaves(type_), strict=True):
                if not isinstance(leaf_type, StackType):
                    moved.append(leaf)
                elif leaf is not None:
                    raise InternalError("a stack is read twice")
            scope.known[argument] = None  # moved; a second occurrence starts at zero
        return moved

    def _pull(self, call: Call, callee: Callee, arguments: list[Atom], active: tuple[int, ...], scope: Scope) -> None:
        """a' := f_b(t, v', a'..)"""
        leaves = unpack(scope.emitter, self._backward(call, callee, arguments, scope), callee.cotangent_types)
        for position in active:
            argument = call.arguments[position]
            own = [leaves.pop(0) for _ in self.cotangents.leaves(type_of(argument))]
            self.accumulate(scope, argument, self.cotangents.unflatten(own, type_of(argument)))

    def _backward(self, call: Call, callee: Callee, arguments: list[Atom], scope: Scope) -> Atom:
        """f_b(t, v', a'..)"""
        given = [*arguments, *(call.arguments[i] for i in callee.invariants)]
        if self.sweep is not None:
            given.append(self.sweep.reference)
        pull = Call(callee.backward, tuple(given), call.span)
        return scope.emitter.bind(pull, pack_type(callee.cotangent_types), "cotangents").atom


def _forward(callee: Callee, target: Var, call: Call) -> tuple[list[Binding], Var]:
    """(v, t) = f_f(a..), and t"""
    both, tape = Var("both", TupleType((callee.result, callee.tape))), Var("tape", callee.tape)
    bindings = [
        Binding((both,), Call(callee.forward, call.arguments, call.span)),
        Binding((target,), Project(both, 0, call.span)),
        Binding((tape,), Project(both, 1, call.span)),
    ]
    return bindings, tape


def _ends(block: Block, seeds: Seeds) -> list[tuple[Atom, Cotangent]]:
    """The values that a block ends with, and their cotangents."""
    terminator = block.terminator
    match terminator:
        case Yield(values):
            cotangents: tuple[Cotangent, ...] = seeds.yields
        case Next(_, values):
            cotangents = seeds.next
        case Exit(_, values):
            assert seeds.exit is not None
            cotangents = seeds.exit
        case Dead():
            return []
        case _:
            assert_never(terminator)
    return list(zip(values, cotangents, strict=True))


def _fill(expression: Expr | None) -> float | None:
    """The number that all elements of the value are known to be."""
    return lookup(expression.operator).memory.constant if isinstance(expression, OpCall) else None


def _accumulating_call(call: OpCall, before: Atom, emitted: Mapping[Var, Expr]) -> OpCall | None:
    """before + call as one call that changes a part of `before`, if the operator has one."""
    operator = lookup(call.operator)
    position = operator.algebra.accumulates
    if isinstance(position, str):
        accumulator = lookup(position)
        attributes = {name: value for name, value in call.attributes.items() if name in accumulator.attributes}
        return OpCall(accumulator.name, (before, *call.arguments), attributes, call.span)
    target = call.arguments[position] if position is not None else None
    if position is None or not isinstance(target, Var) or _fill(emitted.get(target)) != 0:
        return None
    arguments = (*call.arguments[:position], before, *call.arguments[position + 1 :])
    return OpCall(call.operator, arguments, call.attributes, call.span)


def _without_operands(binding: Binding, emitter: Emitter) -> Binding:
    """Zeros of a known shape depend on nothing: what they are modeled on need not be kept for them."""
    call = binding.value
    if not isinstance(call, OpCall) or not call.arguments or _fill(call) != 0:
        return binding
    type_ = type_of(binding.targets[0])
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    return Binding(binding.targets, OpCall("zeros", (), fill_attributes(type_), emitter.span))


def _sum_to(gradient: Value, operand: Value) -> Value:
    """Sum a cotangent over the axes that were broadcast."""
    return gradient if gradient.shape == operand.shape else gradient.op("sum_to", shape=operand.shape)
