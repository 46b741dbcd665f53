"""Specialization: the typed higher-order IR becomes the first-order core; functions are followed to their calls.

A function is specialized by its code and the shapes (see `static_values`) of its arguments and of its environment; the
atoms among them become its parameters: first those of the ordinary parameters, then those of the captured variables.

    call of closure(f, env) with (s, ..)    name(atoms of s .., atoms of env ..)
    call of gradient(s, options)            a `Derivative` of s specialized, with the same arguments (and the seed)
    call of a flow's atom a with (s, ..)    apply(atoms of converted s .., a): see `defunctionalization`
    call with a function in its result      the body in place; if it is recursive, a call whose result is a flow

Where a function grows with each round of a recursion (the same code is being specialized for a part of the new
argument), the argument becomes a flow, one for each parameter of the code; so there are finitely many specializations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import attrs

from relay.errors import CompileError, DifferentiationError, InternalError, Span
from relay.ir.builder import BlockBuilder
from relay.ir.derivative import derivative_type, gradient_type
from relay.ir.expr import (
    Block,
    Call,
    CustomGradient,
    Derivative,
    Function,
    Global,
    Grad,
    Lambda,
    Module,
    Rule,
    Var,
)
from relay.ir.rebuild import copy_function
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.traverse import blocks, operands, returns
from relay.ir.types import DataDefinition, FunctionType, Type
from relay.transform.analysis.graph import strong_components
from relay.transform.core.defunctionalization import ApplyFunctions, finish
from relay.transform.core.flows import Flow, Flows, atom_type
from relay.transform.core.frames import InlinedBody
from relay.transform.core.function_bodies import BodySpecializer
from relay.transform.core.static_values import (
    Closure,
    DynamicValue,
    Gradient,
    LambdaGroup,
    ModuleFunction,
    StaticValue,
    StaticValues,
    TupleValue,
    ValueShape,
    flatten,
    has_grown,
    held_types,
    holds_function,
    option_key,
)
from relay.transform.core.worklist import Request, ResolvedCall, Worklist, callers, with_function
from relay.transform.module_pass import module_pass

GROWTHS = 24
"""The number of ever larger specializations of the same code that may lead to each other before it counts as
growing."""

REPEATS = 2
"""The number of specializations of the same code to the same shape but other flows that may lead to each other."""

LARGEST = 4096
"""The most atoms that a function value may carry."""


@module_pass
def specialize(module: Module) -> Module:
    """The module without function values.

    Raises CompileError if the entry takes or returns functions, DifferentiationError where a derivative's order
    is known only at run time.
    """
    return _Specializer(module).run()


@attrs.frozen(eq=False)
class ClosureExport:
    """A program whose result contains functions, as a first-order one: in the result they are values of data types.
    `applied` is the function of the program that calls values of each of these types, its last argument.
    """

    module: Module
    applied: Mapping[DataDefinition, str]


def export_closures(module: Module) -> ClosureExport:
    """A program whose result holds functions without function values.

    Raises CompileError if it takes functions, or if one of those in the result does: what they may be given is not
    known; DifferentiationError where a derivative's order is data-dependent.
    """
    return _Specializer(module).export_closures()


class _Specializer:
    def __init__(self, module: Module) -> None:
        self.module = module
        taken = {*module.functions, *(d.name for d in module.data)}
        self.flows = Flows(lambda wanted: self.requests.name(wanted))
        self.static = StaticValues(self.flows)
        self.requests = Worklist(self.static, self.flows, taken)
        self.applications = ApplyFunctions(self.static, self.flows, self.requests.name)
        self.bodies = BodySpecializer(self.static, self.flows, self)
        self.functions: dict[str, Function | Derivative] = {}
        self.sizes: dict[Function, int] = {}
        self.in_place: set[Function] = set()  # those whose bodies stand in place of a call
        self.places: dict[tuple[Function, int], Type] = {}
        self.current: Request | None = None
        self.inside: list[tuple[Function, int]] = []  # the functions whose bodies are being followed, and their sizes
        self.exits: dict[Function, bool] = {}
        self.recursive = _directly_recursive(module)

    def run(self) -> Module:
        self._start(result=False)
        self._make_all()
        return finish(self.module, self.functions, self.flows, self.applications)

    def export_closures(self) -> ClosureExport:
        result = self._start(result=True)
        applied: dict[Flow, str] = {}
        while True:
            self._make_all()
            inside = self.flows.reachable_flows(self.flows.canonical(result))
            if all(flow in applied for flow in inside):
                break
            for flow in inside:
                applied[flow] = self.applications.apply_function(flow, None)[0]
        for flow in inside:
            if any(self.flows.carries(t) for t in flow.parameters):
                entry = self.module.main
                raise CompileError(
                    f"{entry.name} returns a function that is selected at run time and takes a function",
                    entry.span,
                    help="return one that takes no functions: its arguments must be known where it is selected",
                )
        module = finish(self.module, self.functions, self.flows, self.applications, tuple(applied.values()))
        names = self.applications.functions()[1]
        return ClosureExport(module, {f.definition: names[applied[f]] for f in inside})

    def _start(self, result: bool) -> Type:
        """Ask for the entry; gives the type of its result. `result`: that may hold functions."""
        entry = self.module.functions[self.module.entry]
        if isinstance(entry, Derivative):
            types: Sequence[Type | None] = entry.type.parameters
            returned: Type | None = entry.type.result
        else:
            types, returned = [p.type for p in entry.parameters], entry.result
        if any(self.flows.mentions(t) for t in (types if result else (*types, returned))):
            raise CompileError(
                "the entry of a compiled program cannot take or return functions",
                entry.span,
                help="call it from another function, which is the entry",
            )
        parameters = [self.static.atom(Var("p", t)) for t in types]
        made = self._resolve(self.static.atom(Global(self.module.entry)), parameters, entry.span, BlockBuilder())
        return made.type.result

    def _make_all(self) -> None:
        """Make everything that has been asked for, and what that asks for."""
        while True:
            if self.requests.pending:
                self._make(self.requests.pending.popleft())
                continue
            missing = self.applications.missing_arm()
            if missing is None:
                break
            alternative, flow, self.current = missing
            self.inside = []
            self.applications.make_arm(alternative, flow, lambda f, xs, out: self.call(f, xs, None, out))

    def _make(self, request: Request) -> None:
        self.current = request
        self.inside = [(request.function, request.size)]
        function = request.function
        body, label = self.bodies.body(function, request.values, request.result)
        self.functions[request.name] = Function(
            request.name,
            request.parameters,
            body,
            label,
            request.result,
            function.signature,
            function.documentation,
            function.span,
            self._rule(function),
        )

    def _rule(self, function: Function) -> Rule | None:
        """The rule for a function's derivative, with the names of its functions' specializations."""
        if not isinstance(function.rule, CustomGradient):
            return function.rule
        named = []
        for name in function.rule_functions:
            found = self.module.functions[name]
            parameters = [self.static.atom(Var("p", t)) for t in found.type.parameters]
            named.append(self._resolve(self.static.atom(Global(name)), parameters, found.span, BlockBuilder()).name)
        return CustomGradient(named[0], named[1] if named[1:] else None, function.rule.depth)

    # ---- calls

    def call(
        self, callee: StaticValue, arguments: list[StaticValue], span: Span | None, out: BlockBuilder
    ) -> tuple[Call, Type]:
        """The call of a function value, and the type of its result."""
        resolved = self._resolve(callee, arguments, span, out)
        return Call(Global(resolved.name, resolved.type), resolved.atoms, span), resolved.type.result

    def inlined_body(self, callee: StaticValue, arguments: list[StaticValue]) -> InlinedBody | None:
        """The body to put in place of a call whose result holds functions, or None if it must be called."""
        values: dict[Var, StaticValue] = {}
        match callee:
            case Closure(function, group, environment):
                values.update(zip(group.captured, environment, strict=True))
                self._see_group(group, values)
            case ModuleFunction(name):
                found = self.module.functions[name]
                if not isinstance(found, Function):
                    return None
                function = found
            case _:
                return None
        if isinstance(function.rule, CustomGradient):  # which a function that returns functions cannot have
            raise InternalError(f"{function.name} has a gradient of its own, and returns functions")
        size = sum(v.shape.size for v in (*values.values(), *arguments))
        if function in self.recursive or any(f is function and s <= size for f, s in self.inside):
            return None
        self.inside.append((function, size))
        if function in self.in_place and bound_dims(function.body):
            function = copy_function(function, keep_sizes=False)  # or its sizes would be made twice
        self.in_place.add(function)
        values.update(zip(function.parameters, arguments, strict=True))
        return InlinedBody(function, values, self._returns_once(function), lambda: _pop(self.inside))

    def _returns_once(self, function: Function) -> bool:
        """True if a function is left at the end of its body only."""
        known = self.exits.get(function)
        if known is None:
            known = self.exits[function] = list(returns(function)) == [function.body.terminator]
        return known

    def _resolve(
        self, callee: StaticValue, arguments: list[StaticValue], span: Span | None, out: BlockBuilder
    ) -> ResolvedCall:
        """The module function for a function value applied to such arguments, asked for if it is new."""
        match callee:
            case Closure(function, group, environment):
                captured = dict(zip(group.captured, environment, strict=True))
                return self._request(function, arguments, captured, group, span, out)
            case ModuleFunction(name):
                function_or_derivative = self.module.functions[name]
                if isinstance(function_or_derivative, Function):
                    return self._request(function_or_derivative, arguments, {}, None, span, out)
                return self._keep_derivative(function_or_derivative, arguments, span, out)
            case Gradient(function_value, options):
                return self._differentiate(function_value, options, arguments, span, out)
            case DynamicValue(atom):
                flow = self.flows.function_flow(atom_type(atom))
                pairs = zip(arguments, flow.parameters, strict=True)
                atoms = tuple(self.bodies.meeting.reify(argument, t, out, span) for argument, t in pairs)
                apply, type_ = self.applications.apply_function(flow, self.current)
                return ResolvedCall(apply, type_, (*atoms, atom), tuple(range(len(atoms))), flow.type)
            case TupleValue():
                raise InternalError("a tuple is called")
            case _:
                assert_never(callee)

    # ---- functions

    def _request(
        self,
        function: Function,
        arguments: list[StaticValue],
        captured: dict[Var, StaticValue],
        group: LambdaGroup | None,
        span: Span | None,
        out: BlockBuilder,
    ) -> ResolvedCall:
        variables = (*function.parameters, *captured)
        every = [*arguments, *captured.values()]
        shapes = self.requests.shapes(every)
        name = self.requests.find(function, shapes)
        if name is None:
            every = self._without_growth(function, variables, every, shapes, span, out)
            shapes = self.requests.shapes(every)
            if self.requests.find(function, shapes) is None:
                shapes = self._without_repeats(function, shapes)
            name = self.requests.find(function, shapes)
        atoms = tuple(flatten(every))
        positions: list[int | None] = []
        at = 0
        for argument in every[: len(arguments)]:
            positions.append(at if isinstance(argument, DynamicValue) else None)
            at += argument.shape.atoms
        if name is None:
            assert function.result is not None
            plain = function is self.module.functions.get(function.name) and not any(s.size for s in shapes)
            name = self.requests.name(function.name, keep=plain)
            parameters: list[Var] = []
            values = {
                v: self.bodies.meeting.rebind(v, value, parameters) for v, value in zip(variables, every, strict=True)
            }
            if group is not None:
                self._see_group(group, values)
            result = self.flows.convert(function.result)
            type_ = FunctionType(tuple(atom_type(p) for p in parameters), result)
            request = Request(name, function, shapes, values, tuple(parameters), result, self.current)
            self.requests.add(request, type_)
        return ResolvedCall(name, self.requests.types[name], atoms, tuple(positions), function.type)

    def _see_group(self, group: LambdaGroup, values: dict[Var, StaticValue]) -> None:
        environment = tuple(values[v] for v in group.captured)
        for variable, member in group.members.items():
            values[variable] = self.static.closure(member, group, environment)

    def _without_growth(
        self,
        function: Function,
        variables: Sequence[Var],
        values: list[StaticValue],
        shapes: tuple[ValueShape, ...],
        span: Span | None,
        out: BlockBuilder,
    ) -> list[StaticValue]:
        """The values with flows in place of what grows from one specialization of the function to the next."""
        size = sum(s.size for s in shapes)
        smallest = self.sizes[function] = min(size, self.sizes.get(function, size))
        growing: set[int] = set()
        growths, bound_ = 0, size
        for request in callers(self.current, function) if size > smallest else ():
            old = [self.requests.canonical(s) for s in request.shapes]
            growing.update(i for i, (a, b) in enumerate(zip(old, shapes, strict=True)) if has_grown(a, b))
            if request.size < bound_:
                growths, bound_ = growths + 1, request.size
        if growths >= GROWTHS or sum(s.atoms for s in shapes) > LARGEST:
            growing.update(range(len(values)))
        made = []
        for i, (variable, value) in enumerate(zip(variables, values, strict=True)):
            if i in growing and not isinstance(value, DynamicValue) and holds_function(variable.type):
                assert variable.type is not None
                place = (function, i)
                if place not in self.places:
                    self.places[place] = self.flows.convert(variable.type)
                value = self.static.atom(self.bodies.meeting.reify(value, self.places[place], out, span))
            made.append(value)
        return made

    def _without_repeats(self, function: Function, shapes: tuple[ValueShape, ...]) -> tuple[ValueShape, ...]:
        """The shapes, after their flows became those of a specialization that led here through another such one."""
        skeletons = [s.skeleton for s in shapes]
        same = [r for r in callers(self.current, function) if [s.skeleton for s in r.shapes] == skeletons]
        if len(same) >= REPEATS and any(s.skeleton is not s for s in shapes):
            for a, b in zip(same[-1].shapes, shapes, strict=True):
                for left, right in zip(held_types(a), held_types(b), strict=True):
                    self.flows.unify(left, right)
            self.requests.refresh()
            return tuple(self.requests.canonical(s) for s in shapes)
        return shapes

    # ---- derivatives

    def _keep_derivative(
        self, derivative: Derivative, arguments: list[StaticValue], span: Span | None, out: BlockBuilder
    ) -> ResolvedCall:
        """A derivative that an earlier pass left in the module stays, of the specialization of its function."""
        seed = 1 if derivative.grad.seedable else 0
        given = arguments[: len(arguments) - seed]
        of = self._resolve(self.static.atom(Global(derivative.of)), given, span, out)
        if derivative.name not in self.functions:
            grad = with_function(derivative.grad, Global(of.name, of.type))
            self.functions[derivative.name] = Derivative(
                derivative.name, of.name, derivative.type, grad, derivative.span
            )
        positions = tuple(range(len(arguments)))
        return ResolvedCall(derivative.name, derivative.type, tuple(flatten(arguments)), positions, derivative.type)

    def _differentiate(
        self, function: StaticValue, options: Grad, arguments: list[StaticValue], span: Span | None, out: BlockBuilder
    ) -> ResolvedCall:
        seed = arguments[-1:] if options.seedable else []
        of = self._resolve(function, arguments[: len(arguments) - len(seed)], span, out)
        logical = range(len(of.seen.parameters)) if options.wrt is None else options.wrt
        found = [of.positions[i] for i in logical]
        wrt = tuple(position for position in found if position is not None)
        if len(wrt) != len(found):
            raise InternalError("a gradient with respect to a function")
        grad = with_function(options, Global(of.name, of.type), wrt)
        try:
            seen = gradient_type(of.seen, options)
            type_ = derivative_type(of.type, grad)
        except DifferentiationError as error:
            raise error.with_span(options.span or span) from None
        key = (of.name, wrt, option_key(options))
        name = self.requests.derivative_name(key)
        if name is None:
            name = self.requests.name(f"{of.name}_gradient")
            self.requests.add_derived(key, name, type_)
            self.functions[name] = Derivative(name, of.name, type_, grad, options.span or span)
        atoms = (*of.atoms, *flatten(seed))
        positions = (*of.positions, *[len(of.atoms) for _ in seed])
        return ResolvedCall(name, self.requests.types[name], atoms, positions, seen)


def _pop(inside: list[tuple[Function, int]]) -> None:
    inside.pop()


def _directly_recursive(module: Module) -> set[Function]:
    """The module functions that lead to themselves by calls outside of the lambdas in them."""
    edges: dict[str, list[str]] = {}
    for name, function in module.functions.items():
        edges[name] = [function.of] if isinstance(function, Derivative) else list(_referenced_globals(function.body))
    found: set[Function] = set()
    for component in strong_components(edges):
        if len(component) > 1 or component[0] in edges[component[0]]:
            found.update(f for f in map(module.functions.__getitem__, component) if isinstance(f, Function))
    return found


def _referenced_globals(block: Block) -> Iterator[str]:
    pending = [block]
    while pending:
        for binding in pending.pop().bindings:
            yield from (a.name for a in operands(binding.value) if isinstance(a, Global))
            if not isinstance(binding.value, Lambda):
                pending += blocks(binding.value)
