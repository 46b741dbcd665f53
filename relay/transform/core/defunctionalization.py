"""Defunctionalization (Reynolds): flows as data types with an `apply` function each, and the finished module.

    apply(x, .., f)  =  match f { C(captured, ..) -> code of C specialized to (x, .., captured, ..), .. }

A constructor's arm is made when both the constructor and a call of the flow exist; it may call further functions and
flows, until nothing new appears. At the end only code that the entry reaches is kept: an arm counts if its constructor
is used. A `Derivative` that leads to itself is a derivative whose order is known only at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import DifferentiationError
from relay.ir.builder import BlockBuilder
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Construct,
    Dead,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    LoopLabel,
    Match,
    MatchArm,
    Module,
    StackNew,
    Var,
)
from relay.ir.rebuild import copy_block, map_parts
from relay.ir.traverse import bound_variables, operands, walk
from relay.ir.types import DataType, FunctionType, Type
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.core.captured_dims import captured_at, made_again
from relay.transform.core.flows import NEVER, Flow, FlowMember, Flows, atom_type, field_names, variables
from relay.transform.core.rebuilding import with_body
from relay.transform.core.static_values import Closure, Gradient, ModuleFunction, StaticValue, StaticValues
from relay.transform.core.worklist import Request, with_function

Calling: TypeAlias = Callable[[StaticValue, "list[StaticValue]", BlockBuilder], "tuple[Call, Type]"]
"""Makes the call of a function value in a draft; gives it with its result's type."""


@attrs.frozen(eq=False)
class _ApplyArm:
    """The code of one constructor, on variables of its own."""

    parameters: tuple[Var, ...]
    fields: tuple[Var, ...]
    block: Block


@attrs.define(eq=False)
class _ApplyFunction:
    """The `apply` function of a flow. `caller` is the request that first needed it."""

    name: str
    flow: Flow
    caller: Request | None


class ApplyFunctions:
    """The `apply` functions of a module's flows."""

    def __init__(self, static: StaticValues, flows: Flows, fresh_name: Callable[[str], str]) -> None:
        self._static = static
        self._flows = flows
        self._fresh_name = fresh_name
        self._made: list[_ApplyFunction] = []
        self._by_flow: dict[Flow, _ApplyFunction] = {}
        self._arms: dict[FlowMember, _ApplyArm] = {}

    def apply_function(self, flow: Flow, caller: Request | None) -> tuple[str, FunctionType]:
        """The `apply` function of a flow: its name and type."""
        flow = self._flows.find(flow)
        found = self._by_flow.get(flow)
        if found is None:
            found = self._by_flow[flow] = _ApplyFunction(self._fresh_name("apply"), flow, caller)
            self._made.append(found)
        return found.name, FunctionType((*flow.parameters, DataType(flow.definition)), flow.result)

    def missing_arm(self) -> tuple[FlowMember, Flow, Request | None] | None:
        """A constructor that has no arm yet."""
        for application in self._made:
            flow = self._flows.find(application.flow)
            for alternative in flow.alternatives.values():
                if alternative not in self._arms:
                    return alternative, flow, application.caller
        return None

    def make_arm(self, alternative: FlowMember, flow: Flow, calling: Calling) -> None:
        """Make the arm of a constructor."""
        out, label = BlockBuilder(), LoopLabel("apply")
        like = alternative.like
        parameters = tuple(Var("x", t) for t in flow.parameters)
        names = (*(dim.name for dim in alternative.sizes), *field_names(like))
        fields = variables(alternative.fields, names)
        given: list[StaticValue] = [self._static.atom(f) for f in fields]
        match like:
            case Closure() if alternative.sizes:
                count = len(alternative.sizes)
                again = made_again(out, self._flows.sizes_of(alternative, like), fields[:count])
                pairs = zip(like.group.captured, fields[count:], strict=True)
                held = tuple(self._static.atom(captured_at(v, f, again, out)) for v, f in pairs)
                copy = self._flows.copy_with_dims(alternative, again)
                callee: StaticValue = self._static.closure(copy.function, copy.group, held)
            case Closure(function, group):
                callee = self._static.closure(function, group, tuple(given))
            case ModuleFunction():
                callee = like
            case Gradient(_, options):
                callee = self._static.gradient(given[0], options)
        call, type_ = calling(callee, [self._static.atom(p) for p in parameters], out)
        self._flows.unify(flow.result, type_)
        result = out.assign(call, type_, "result", call.span)
        out.terminator = Exit(label, (result,))
        self._arms[alternative] = _ApplyArm(parameters, fields, out.block())

    def functions(self) -> tuple[dict[str, tuple[Flow, LoopLabel]], dict[str, str]]:
        """One `apply` function for each flow, by its name; and the names of those that were merged with it."""
        kept: dict[Flow, str] = {}
        renamed: dict[str, str] = {}
        for application in self._made:
            flow = self._flows.find(application.flow)
            renamed[application.name] = kept.setdefault(flow, application.name)
        return {name: (flow, LoopLabel(name)) for flow, name in kept.items()}, renamed

    def arm(self, alternative: FlowMember) -> _ApplyArm:
        """The arm of a constructor."""
        return self._arms[alternative]


def finish(
    module: Module,
    functions: Mapping[str, Function | Derivative],
    flows: Flows,
    applications: ApplyFunctions,
    called: Sequence[str] = (),
) -> Module:
    """The module of the specialized functions and the `apply` functions, without what the entry does not lead to. Those
    that are `called` from outside stay.

    Raises DifferentiationError where a derivative's order is data-dependent.
    """
    finished = _ModuleFinisher(module, functions, flows, applications).run(called)
    _check_orders(finished)
    return finished


class _ModuleFinisher:
    def __init__(
        self, module: Module, functions: Mapping[str, Function | Derivative], flows: Flows, applications: ApplyFunctions
    ) -> None:
        self.module = module
        self.functions = functions
        self.flows = flows
        self.applications = applications
        self.applied, self.renamed = applications.functions()
        self.live: set[str] = set()
        self.pending: list[str] = []
        self.made: dict[Flow, set[str]] = {}  # the constructors that are
        self.types: dict[Type, None] = {}  # the types of variables

    def run(self, called: Sequence[str]) -> Module:
        self._find_live(called)
        kept: dict[str, Function | Derivative] = {}
        for name, function in self.functions.items():
            if name in self.live:
                kept[name] = self._rewrite_function(function)
        for name in self.applied:
            if name in self.live:
                kept[name] = self._apply(name)
        entry = kept.pop(self.module.entry)
        definitions = self.flows.finish(self.types, self.made)
        data = (*(d for d in self.module.data if self.flows.convert_definition(d) is d), *definitions)
        return Module({self.module.entry: entry} | kept, self.module.entry, data, self.module.where)

    # ---- what the entry leads to

    def _find_live(self, called: Sequence[str]) -> None:
        for name in (self.module.entry, *called):
            self._reach(name)
        while self.pending:
            name = self.pending.pop()
            if name in self.applied:
                flow = self.applied[name][0]
                for alternative in flow.alternatives.values():
                    if alternative.name in self.made.get(flow, ()):
                        self._visit(self.applications.arm(alternative).block)
                continue
            function = self.functions[name]
            if isinstance(function, Derivative):
                self._reach(function.of)
            else:
                self._visit(function.body)
                for named in function.rule_functions:
                    self._reach(named)

    def _reach(self, name: str) -> None:
        name = self.renamed.get(name, name)
        if name not in self.live:
            self.live.add(name)
            self.pending.append(name)

    def _visit(self, block: Block) -> None:
        for binding in walk(block):
            for atom in operands(binding.value):
                if isinstance(atom, Global):
                    self._reach(atom.name)
            if isinstance(binding.value, Construct):
                flow = self.flows.of_definition(binding.value.definition)
                if flow is not None and binding.value.constructor not in self.made.setdefault(flow, set()):
                    self.made[flow].add(binding.value.constructor)
                    name = next((n for n, (applied, _) in self.applied.items() if applied is flow), None)
                    if name in self.live:
                        self.pending.append(name)

    # ---- with the data types of the flows' representatives

    def _rewrite_function(self, function: Function | Derivative) -> Function | Derivative:
        if isinstance(function, Derivative):
            of = self._atom(function.grad.function)
            assert isinstance(of, Global)
            grad = with_function(function.grad, of)
            return Derivative(function.name, of.name, self._function_type(function.type), grad, function.span)
        for parameter in function.parameters:
            self._retype(parameter)
        assert function.result is not None
        result = self.flows.canonical(function.result)
        return with_body(function, self._block(function.body), result)

    def _apply(self, name: str) -> Function:
        flow, label = self.applied[name]
        parameters = tuple(Var("x", t) for t in flow.parameters)
        chosen = Var("f", DataType(flow.definition))
        for parameter in (*parameters, chosen):
            self._retype(parameter)
        arms = []
        for alternative in flow.alternatives.values():
            if alternative.name not in self.made.get(flow, ()):
                continue
            arm = self.applications.arm(alternative)
            fields = tuple(Var(f.name, f.type) for f in arm.fields)
            for field in fields:
                self._retype(field)
            own = (*arm.parameters, *arm.fields)
            mapping: dict[Var, Atom] = dict(zip(own, (*parameters, *fields), strict=True))
            (end,) = {arm.block.terminator.label} if isinstance(arm.block.terminator, Exit) else {label}
            copied = copy_block(arm.block, mapping, {end: label}, keep_sizes=True)  # which what it calls mentions
            arms.append(MatchArm(alternative.name, fields, self._block(copied)))
        result = self.flows.canonical(flow.result)
        if not arms:  # no such function is ever made; the flow's data type has one constructor nevertheless
            never = Var("never", result)
            own = (*parameters, chosen)
            itself = Global(name, FunctionType(tuple(atom_type(p) for p in own), result))
            again = Binding((never,), Call(itself, own))
            arms.append(MatchArm(NEVER, (), Block((again,), Exit(label, (never,)))))
        body = Block((Binding((), Match(chosen, tuple(arms))),), Dead())
        return Function(name, (*parameters, chosen), body, label, result)

    def _block(self, block: Block) -> Block:
        for binding in block.bindings:
            for variable in (*binding.targets, *bound_variables(binding.value)):
                self._retype(variable)
        bindings = tuple(Binding(b.targets, self._expression(b.value)) for b in block.bindings)
        return Block(bindings, block.terminator)

    def _expression(self, expression: Expr) -> Expr:
        expression = map_parts(expression, atom=self._atom, block=self._block)
        match expression:
            case Construct(definition):
                type_ = self.flows.canonical(DataType(definition))
                assert isinstance(type_, DataType)
                return Construct(type_.definition, expression.constructor, expression.arguments, expression.span)
            case StackNew(element):
                return StackNew(self.flows.canonical(element), expression.span)
            case _:
                return expression

    def _atom(self, atom: Atom) -> Atom:
        if not isinstance(atom, Global):
            return atom
        type_ = None if atom.type is None else self.flows.canonical(atom.type)
        return Global(self.renamed.get(atom.name, atom.name), type_, atom.span)

    def _retype(self, variable: Var) -> None:
        """Specialized variables belong to nobody else, so that their types may be changed."""
        if variable.type is not None:
            variable.type = self.flows.canonical(variable.type)
            self.types[variable.type] = None

    def _function_type(self, type_: FunctionType) -> FunctionType:
        changed = self.flows.canonical(type_)
        assert isinstance(changed, FunctionType)
        return changed


def _check_orders(module: Module) -> None:
    graph = call_graph(module)
    for component in strong_components(graph):
        derivatives = [f for f in (module.functions[name] for name in component) if isinstance(f, Derivative)]
        if derivatives:
            own = set(component)
            if len(component) > 1 or component[0] in graph[component[0]]:
                spans = [d.grad.span or d.span for d in derivatives if d.of in own]
                raise DifferentiationError(
                    "the order of differentiation depends on a run-time value",
                    next((s for s in spans if s is not None), None),
                    help="the order must be static: write the number, or use static_argnames",
                )
