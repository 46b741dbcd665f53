"""From the typed higher-order IR to the first-order core: functions as values are followed to where they are called.

A function is specialised by its code and the shapes (see `static_values`) of its arguments and of its environment; the
atoms among them become its parameters: first those of the ordinary parameters, then those of the captured variables.

    call of closure(f, env) with (s, ..)    name(atoms of s .., atoms of env ..)
    call of gradient(s, options)            a `Derivative` of s specialised, with the same arguments (and the seed)
    call with a function in its result      the body in place, as a loop that runs once if it returns early
    if, match, loop joining functions       the same code in all arms: the environments are joined; otherwise an error

Functions that a run-time value chooses raise CompileError. `_Join.meet` is the one place where that is noticed: the
conversion to a data type with an `apply` function (Reynolds) belongs there, as a further kind of static value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import NoReturn, assert_never

import attrs

from relay.errors import CompileError, DifferentiationError, InternalError, Span
from relay.ir.derivative import gradient_type
from relay.ir.expr import (
    Arm,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Derivative,
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
    Module,
    Next,
    Project,
    RefNew,
    RefWrite,
    StackPush,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, free_variables, map_atoms
from relay.ir.types import FunctionType, Type
from relay.transform.graph import strong_components
from relay.transform.static_values import (
    Closure,
    Dynamic,
    Gradient,
    Group,
    Named,
    StaticValue,
    StaticValues,
    Tuple,
    flatten,
    holds_function,
    option_key,
)

GROWTHS = 24
"""How many ever larger specialisations of the same code may lead to each other before it counts as growing."""

LARGEST = 4096
"""The most atoms that a function value may carry."""

ADVICE = "call it in the branch or loop that chooses it, or run this program with interpret()"


def specialise(module: Module) -> Module:
    """The module without function values. Raises CompileError where a run-time value chooses a function."""
    return _Specialiser(module).run()


@attrs.define(eq=False)
class _Join:
    """What meets in the targets of an If or Match, or in the results or parameters of a loop."""

    values: list[StaticValue] | None = None

    def meet(self, values: list[StaticValue], span: Span | None) -> None:
        """One more way to get here. Raises CompileError if the functions among the values differ."""
        if self.values is None:
            self.values = values
        elif any(a.shape is not b.shape for a, b in zip(self.values, values, strict=True)):
            _chosen_at_run_time(span)


def _chosen_at_run_time(span: Span | None) -> NoReturn:
    raise CompileError(
        "the function called here is chosen at run time; the compiler needs to know which it is", span, help=ADVICE
    )


def _grows(span: Span | None) -> NoReturn:
    raise CompileError(
        "the function called here is chosen at run time; every round wraps the one before into a new one",
        span,
        help=ADVICE,
    )


@attrs.define(eq=False)
class _Frame:
    """One function body being specialised: what its variables are, and what meets where."""

    values: dict[Var, StaticValue]
    labels: dict[LoopLabel, tuple[LoopLabel, _Join, _Join | None]] = attrs.field(factory=dict)  # exits, nexts
    yields: list[_Join] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class _Request:
    """A function that is to be made. `caller` is the request whose body first asked for it."""

    name: str
    function: Function
    values: dict[Var, StaticValue]
    parameters: tuple[Var, ...]
    size: int
    caller: _Request | None


@attrs.frozen
class _Resolved:
    """A function value applied: the module function, the atoms to call it with, and for each argument of the call its
    position among them (None if it carries functions). `seen` is the type of the function value."""

    name: str
    type: FunctionType
    atoms: tuple[Atom, ...]
    positions: tuple[int | None, ...]
    seen: FunctionType


class _Specialiser:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.static = StaticValues()
        self.names: dict[Hashable, str] = {}
        self.taken: set[str] = set(module.functions)
        self.functions: dict[str, Function | Derivative] = {}
        self.types: dict[str, FunctionType] = {}
        self.sizes: dict[Function, int] = {}
        self.pending: deque[_Request] = deque()
        self.current: _Request | None = None
        self.inlined: list[tuple[Function, int]] = []
        self.exits: dict[Function, bool] = {}

    def run(self) -> Module:
        entry = self.module.functions[self.module.entry]
        if isinstance(entry, Derivative):
            types: Sequence[Type] = entry.type.parameters
            result: Type | None = entry.type.result
        else:
            types, result = [p.type for p in entry.parameters if p.type is not None], entry.result
        if any(holds_function(t) for t in (*types, result)):
            raise CompileError("a compiled function cannot take or return functions", entry.span, help=ADVICE)
        self._resolve(
            self.static.atom(Global(self.module.entry)), [self._fresh_parameter(t) for t in types], entry.span
        )
        while self.pending:
            self._make(self.pending.popleft())
        entry_made = self.functions[self.module.entry]
        ordered = {self.module.entry: entry_made} | self.functions
        return Module(ordered, self.module.entry, self.module.data)

    def _fresh_parameter(self, type_: Type) -> StaticValue:
        return self.static.atom(Var("p", type_))

    # ---- functions

    def _resolve(self, callee: StaticValue, arguments: list[StaticValue], span: Span | None) -> _Resolved:
        """The module function for a function value applied to such arguments, asked for if it is new."""
        match callee:
            case Closure(function, group, environment):
                captured = dict(zip(group.captured, environment, strict=True))
                return self._request(function, arguments, captured, group, span)
            case Named(name):
                function_or_derivative = self.module.functions[name]
                if isinstance(function_or_derivative, Function):
                    return self._request(function_or_derivative, arguments, {}, None, span)
                return self._keep_derivative(function_or_derivative, arguments, span)
            case Gradient(function_value, options):
                return self._differentiate(function_value, options, arguments, span)
            case Dynamic() | Tuple():
                _chosen_at_run_time(span)
            case _:
                assert_never(callee)

    def _request(
        self,
        function: Function,
        arguments: list[StaticValue],
        captured: dict[Var, StaticValue],
        group: Group | None,
        span: Span | None,
    ) -> _Resolved:
        if holds_function(function.result):
            raise CompileError(
                f"{function.name} returns a function, so it cannot be differentiated by a compiled program",
                span,
            )
        every = [*arguments, *captured.values()]
        key = (function, tuple(v.shape for v in every))
        atoms = tuple(flatten(every))
        positions: list[int | None] = []
        at = 0
        for argument in arguments:
            positions.append(at if isinstance(argument, Dynamic) else None)
            at += argument.shape.atoms
        name = self.names.get(key)
        if name is None:
            size = sum(v.shape.size for v in every)
            self._check_growth(function, size, len(atoms), span)
            name = self._name(function.name, keep=function is self.module.functions.get(function.name) and size == 0)
            self.names[key] = name
            parameters: list[Var] = []
            values: dict[Var, StaticValue] = {}
            for parameter, argument in zip(function.parameters, arguments, strict=True):
                values[parameter] = self._rebind(parameter, argument, parameters)
            for variable, value in captured.items():
                values[variable] = self._rebind(variable, value, parameters)
            if group is not None:
                self._see_group(group, values)
            assert function.result is not None
            self.types[name] = FunctionType(tuple(_type(p) for p in parameters), function.result)
            self.pending.append(_Request(name, function, values, tuple(parameters), size, self.current))
        return _Resolved(name, self.types[name], atoms, tuple(positions), function.type)

    def _see_group(self, group: Group, values: dict[Var, StaticValue]) -> None:
        environment = tuple(values[v] for v in group.captured)
        for variable, member in group.members.items():
            values[variable] = self.static.closure(member, group, environment)

    def _check_growth(self, function: Function, size: int, atoms: int, span: Span | None) -> None:
        """Stop at a function that leads to ever larger specialisations of itself. Raises CompileError."""
        if atoms > LARGEST:
            _grows(span)
        smallest = self.sizes.setdefault(function, size)
        if size < smallest:
            self.sizes[function] = size
        if size <= smallest:
            return
        growths, bound, request = 0, size, self.current
        while request is not None:
            if request.function is function and request.size < bound:
                growths, bound = growths + 1, request.size
            request = request.caller
        if growths >= GROWTHS:
            _grows(span)

    def _keep_derivative(self, derivative: Derivative, arguments: list[StaticValue], span: Span | None) -> _Resolved:
        """A derivative that an earlier pass left in the module stays, of the specialisation of its function."""
        seed = 1 if derivative.grad.seedable else 0
        of = self._resolve(self.static.atom(Global(derivative.of)), arguments[: len(arguments) - seed], span)
        if derivative.name not in self.functions:
            grad = _options(derivative.grad, of, derivative.grad.wrt)
            self.functions[derivative.name] = Derivative(
                derivative.name, of.name, derivative.type, grad, derivative.span
            )
        positions = tuple(range(len(arguments)))
        return _Resolved(derivative.name, derivative.type, tuple(flatten(arguments)), positions, derivative.type)

    def _differentiate(
        self, function: StaticValue, options: Grad, arguments: list[StaticValue], span: Span | None
    ) -> _Resolved:
        seed = arguments[-1:] if options.seedable else []
        of = self._resolve(function, arguments[: len(arguments) - len(seed)], span)
        try:
            seen = gradient_type(of.seen, options)
        except DifferentiationError as error:
            raise error.at(options.span or span) from None
        logical = range(len(of.seen.parameters)) if options.wrt is None else options.wrt
        found = [of.positions[i] for i in logical]
        wrt = tuple(position for position in found if position is not None)
        if len(wrt) != len(found):
            raise InternalError("a gradient with respect to a function")
        key = (of.name, wrt, option_key(options))
        name = self.names.get(key)
        if name is None:
            name = self._name(f"{of.name}_gradient", keep=False)
            self.names[key] = name
            type_ = FunctionType((*of.type.parameters, *seen.parameters[len(of.seen.parameters) :]), seen.result)
            grad = _options(options, of, wrt)
            self.functions[name] = Derivative(name, of.name, type_, grad, options.span or span)
            self.types[name] = type_
        atoms = (*of.atoms, *flatten(seed))
        return _Resolved(name, self.types[name], atoms, (*of.positions, *[len(of.atoms) for _ in seed]), seen)

    def _name(self, wanted: str, *, keep: bool) -> str:
        if keep and wanted not in self.functions and wanted not in self.types:
            return wanted
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def _make(self, request: _Request) -> None:
        self.current = request
        function = request.function
        label, returned = LoopLabel(function.label.name), _Join()
        frame = _Frame(dict(request.values), {function.label: (label, returned, None)})
        body = self._block(frame, function.body)
        self.functions[request.name] = Function(
            request.name,
            request.parameters,
            body,
            label,
            function.result,
            function.signature,
            function.documentation,
            function.span,
        )

    # ---- variables

    def _value(self, frame: _Frame, atom: Atom) -> StaticValue:
        match atom:
            case Var():
                value = frame.values.get(atom)
                if value is None:
                    raise InternalError(f"{atom} is not in scope")
                return value
            case Constant() | Global():
                return self.static.atom(atom)
            case Static():
                raise InternalError("a surface atom reached specialisation")
            case _:
                assert_never(atom)

    def _plain(self, frame: _Frame, atom: Atom, span: Span | None) -> Atom:
        """The atom for an operand that must not be a function."""
        value = frame.values.get(atom) if isinstance(atom, Var) else self.static.atom(atom)
        if value is None:
            raise InternalError(f"{atom!r} is not in scope")
        if not isinstance(value, Dynamic):
            raise CompileError(
                "a function is stored in a reference, a list or a data type here; the compiler has to know which",
                span,
                help=ADVICE,
            )
        return value.atom

    def _fresh(self, frame: _Frame, variable: Var) -> Var:
        copy = Var(variable.name, variable.type, variable.span)
        frame.values[variable] = self.static.atom(copy)
        return copy

    def _rebind(self, variable: Var, value: StaticValue, into: list[Var]) -> StaticValue:
        """A value like `value` on fresh variables, which are appended to `into`."""
        if isinstance(value, Dynamic):
            copy = Var(variable.name, variable.type, variable.span)
            into.append(copy)
            return self.static.atom(copy)

        def fresh(old: Atom, name: str) -> Atom:
            copy = Var(name, _type(old), variable.span)
            into.append(copy)
            return copy

        return self.static.rebuild(value, fresh, variable.name)

    def _targets(self, frame: _Frame, targets: tuple[Var, ...], join: _Join) -> tuple[Var, ...]:
        """Bind what met in `join` to fresh variables for `targets`, and return these."""
        found: list[Var] = []
        for position, target in enumerate(targets):
            if not holds_function(target.type):
                found.append(self._fresh(frame, target))
            elif join.values is not None:
                frame.values[target] = self._rebind(target, join.values[position], found)
        return tuple(found)

    # ---- blocks

    def _block(self, frame: _Frame, block: Block) -> Block:
        out: list[Binding] = []
        self._bindings(frame, block.bindings, out)
        return Block(tuple(out), self._terminator(frame, block.terminator))

    def _arm(self, frame: _Frame, block: Block, join: _Join) -> Block:
        frame.yields.append(join)
        made = self._block(frame, block)
        frame.yields.pop()
        return made

    def _terminator(self, frame: _Frame, terminator: Terminator) -> Terminator:
        match terminator:
            case Yield(values, span):
                met = [self._value(frame, v) for v in values]
                frame.yields[-1].meet(met, span)
                return Yield(tuple(flatten(met)), span)
            case Exit(label, values, span):
                met = [self._value(frame, v) for v in values]
                new, exits, _ = frame.labels[label]
                exits.meet(met, span)
                return Exit(new, tuple(flatten(met)), span)
            case Next(label, values, span):
                met = [self._value(frame, v) for v in values]
                new, _, nexts = frame.labels[label]
                assert nexts is not None
                nexts.meet(met, span)
                return Next(new, tuple(flatten(met)), span)
            case Dead():
                return terminator
            case _:
                assert_never(terminator)

    def _bindings(self, frame: _Frame, bindings: Sequence[Binding], out: list[Binding]) -> None:
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

    def _lambdas(self, frame: _Frame, lambdas: dict[Var, Function]) -> None:
        """Bind consecutive lambdas, group by group, so that a closure captures no more than it needs."""
        free = {variable: free_variables(function) for variable, function in lambdas.items()}
        edges = {variable: [v for v in captured if v in lambdas] for variable, captured in free.items()}
        for component in strong_components(edges):
            members = {v: lambdas[v] for v in component}
            captured = tuple(dict.fromkeys(v for m in component for v in free[m] if v not in members))
            group = Group(members, captured)
            environment = tuple(self._value(frame, v) for v in captured)
            for variable, function in members.items():
                frame.values[variable] = self.static.closure(function, group, environment)

    def _binding(self, frame: _Frame, binding: Binding, out: list[Binding]) -> None:
        value, targets = binding.value, binding.targets
        made: Expr
        match value:
            case Var() | Constant() | Global():
                frame.values[targets[0]] = self._value(frame, value)
                return
            case Call(function, arguments, span):
                self._call(frame, targets[0], function, [self._value(frame, a) for a in arguments], span, out)
                return
            case MakeTuple(items) if holds_function(targets[0].type):
                frame.values[targets[0]] = self.static.make_tuple(tuple(self._value(frame, i) for i in items))
                return
            case Project(whole, index):
                known = self._value(frame, whole)
                if isinstance(known, Tuple):
                    frame.values[targets[0]] = known.items[index]
                    return
                made = map_atoms(value, lambda a: self._plain(frame, a, None))
            case Grad(function):
                frame.values[targets[0]] = self.static.gradient(self._value(frame, function), value)
                return
            case If(arms, orelse, span):
                join = _Join()
                new_arms = tuple(
                    Arm(self._arm(frame, a.condition, _Join()), self._arm(frame, a.body, join)) for a in arms
                )
                made = If(new_arms, self._arm(frame, orelse, join), span)
                out.append(Binding(self._targets(frame, targets, join), made))
                return
            case Match(scrutinee, match_arms, span):
                join = _Join()
                atom = self._plain(frame, scrutinee, span)
                new_match_arms = tuple(
                    MatchArm(
                        a.constructor, tuple(self._fresh(frame, f) for f in a.fields), self._arm(frame, a.body, join)
                    )
                    for a in match_arms
                )
                out.append(Binding(self._targets(frame, targets, join), Match(atom, new_match_arms, span)))
                return
            case Loop():
                out.append(self._loop(frame, targets, value))
                return
            case RefNew() | RefWrite() | StackPush() | Construct():
                made = map_atoms(value, lambda a: self._plain(frame, a, value.span))
            case Lambda():
                raise InternalError("a lambda outside of its group")
            case _:
                made = map_atoms(value, lambda a: self._plain(frame, a, None))
        out.append(Binding(tuple(self._fresh(frame, t) for t in targets), made))

    def _loop(self, frame: _Frame, targets: tuple[Var, ...], loop: Loop) -> Binding:
        initial = [self._value(frame, a) for a in loop.initial]
        count = None if loop.counter is None else self._plain(frame, loop.counter.count, loop.span)
        parameters: list[Var] = []
        carried = [self._rebind(p, v, parameters) for p, v in zip(loop.parameters, initial, strict=True)]
        frame.values.update(zip(loop.parameters, carried, strict=True))
        counter = (
            None if loop.counter is None or count is None else Counter(self._fresh(frame, loop.counter.index), count)
        )
        label, exits = LoopLabel(loop.label.name), _Join(None if counter is None else carried)
        frame.labels[loop.label] = (label, exits, _Join(carried))
        body = self._block(frame, loop.body)
        made = Loop(label, tuple(parameters), tuple(flatten(initial)), body, counter, loop.span)
        return Binding(self._targets(frame, targets, exits), made)

    # ---- calls

    def _call(
        self,
        frame: _Frame,
        target: Var,
        function: Atom,
        arguments: list[StaticValue],
        span: Span | None,
        out: list[Binding],
    ) -> None:
        callee = self._value(frame, function)
        if holds_function(target.type):
            frame.values[target] = self._inline(target, callee, arguments, span, out)
            return
        resolved = self._resolve(callee, arguments, span)
        call = Call(Global(resolved.name, resolved.type), resolved.atoms, span)
        out.append(Binding((self._fresh(frame, target),), call))

    def _inline(
        self, target: Var, callee: StaticValue, arguments: list[StaticValue], span: Span | None, out: list[Binding]
    ) -> StaticValue:
        """The body of a function that returns a function, in place of the call."""
        values: dict[Var, StaticValue] = {}
        match callee:
            case Closure(function, group, environment):
                values.update(zip(group.captured, environment, strict=True))
                self._see_group(group, values)
            case Named(name):
                found = self.module.functions[name]
                if not isinstance(found, Function):
                    raise InternalError(f"the derivative {name} returns a function")
                function = found
            case Gradient():
                raise CompileError("the derivative of a function that returns functions is not supported", span)
            case _:
                _chosen_at_run_time(span)
        size = sum(v.shape.size for v in (*values.values(), *arguments))
        if any(f is function and s <= size for f, s in self.inlined):
            _chosen_at_run_time(span)
        values.update(zip(function.parameters, arguments, strict=True))
        label, exits = LoopLabel(function.label.name), _Join()
        frame = _Frame(values, {function.label: (label, exits, None)})
        self.inlined.append((function, size))
        if self._returns_once(function):
            self._bindings(frame, function.body.bindings, out)
            self._terminator(frame, function.body.terminator)
            assert exits.values is not None
            result = exits.values[0]
        else:
            body = self._block(frame, function.body)
            targets: list[Var] = []
            if exits.values is None:
                raise CompileError(f"{function.name} never returns", span)
            result = self._rebind(target, exits.values[0], targets)
            out.append(Binding(tuple(targets), Loop(label, (), (), body, None, span)))
        self.inlined.pop()
        return result

    def _returns_once(self, function: Function) -> bool:
        """Whether a function is left at the end of its body only."""
        known = self.exits.get(function)
        if known is None:
            exits = (b.terminator for b in all_blocks(function.body))
            leaving = sum(1 for t in exits if isinstance(t, Exit) and t.label is function.label)
            known = self.exits[function] = leaving == 1 and isinstance(function.body.terminator, Exit)
        return known


def _options(grad: Grad, of: _Resolved, wrt: tuple[int, ...] | None) -> Grad:
    function = Global(of.name, of.type)
    return Grad(function, wrt, grad.output, grad.keeping, grad.seedable, grad.with_value, grad.span)


def _type(atom: Atom) -> Type:
    if isinstance(atom, Static) or atom.type is None:
        raise InternalError(f"{atom!r} has no type")
    return atom.type
