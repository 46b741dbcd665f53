"""Accumulator sinking: sums that recursive functions pass along are computed after the recursion.

    fn f(x, dw) { .. f(y, add(dw, matmul(h, d))) }       fn f(x, s) { .. f(y, push s (h, d)) }
    dw = f(x, a)                                         s = f(x, stack); dw = a + sum of h d over the entries of s

A call that adds to a large array writes all of it; collected, the operands of many calls are the rows of a few products
(`summed` in an operator's definition), and updates of parts of an array are added to one array in a loop. Operands that
are larger than the saving are not collected.

A sum is added up in another order than before, so the result may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.ir import dims
from relay.ir.dims import Dim
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Derivative,
    Expr,
    Function,
    Global,
    MakeTuple,
    Module,
    OpCall,
    Project,
    StackNew,
    StackPush,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.sizes.data_dependent import bound_dims, free_dims
from relay.ir.traverse import walk
from relay.ir.types import FunctionType, StackType, TensorType, TupleType, Type
from relay.operator import ADDITION, Emitter, lookup
from relay.transform.analysis.graph import call_graph, references, strong_components
from relay.transform.analysis.loop_analysis import elements, exceeds, likely
from relay.transform.core.rebuilding import with_functions
from relay.transform.module_pass import pass_about
from relay.transform.recursion.accumulators import Accumulators, find, updated_operand
from relay.transform.recursion.collected_terms import ROWS, CollectedTerm, added_up, pack_atoms, total_type, unpack_atom

SMALLEST = 256
"""Arrays with fewer elements are passed along as they are."""

SHORT = 64
"""Terms with at most this many elements are collected as they are; longer ones if operands of products as long are
collected, too, so that what is collected takes no more memory than a tape does."""


@pass_about(Call)
def sink_accumulators(module: Module, smallest: int = SMALLEST) -> Module:
    """The module with sums that recursive functions pass along, of at least this many elements, made after the
    recursion.

    Where a size is symbolic, it is taken to be `loop_analysis.LIKELY_SIZE`.
    """
    graph = call_graph(module)
    fixed = {module.entry}
    for function in module.functions.values():
        fixed.update(references(function) if isinstance(function, Derivative) else function.rule_functions)
    plans: dict[str, dict[int, _DeferredSum]] = {}
    sums: dict[str, Accumulators] = {}
    for component in strong_components(graph):
        members: dict[str, Function] = {}
        for name in component:
            found = module.functions[name]
            recursive = len(component) > 1 or name in graph[name]
            if isinstance(found, Function) and (bound_dims(found.body) or free_dims(found)):
                continue  # what it adds may have another size in each call
            if recursive and isinstance(found, Function) and found.rule is None and name not in fixed:
                members[name] = found
        if members:
            of = find(members)
            planned = _plan(members, of, smallest)
            plans.update(planned)
            sums.update(dict.fromkeys(planned, of))
    if not plans:
        return module
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function):
            function = _SumDeferral(plans, sums.get(name), function, module).function()
        functions[name] = function
    return with_functions(module, functions)


# ---- what is collected


@attrs.define(eq=False)
class _DeferredSum:
    """A sum that is passed along by one or more functions: its type, and what is added to it, by the variable that is
    the sum after it."""

    type: TensorType
    part: int
    terms: dict[Var, CollectedTerm] = attrs.field(factory=dict)
    merged: _DeferredSum | None = None
    refused: bool = False

    def root(self) -> _DeferredSum:
        found = self
        while found.merged is not None:
            found = found.merged
        return found

    def stacks(self) -> Type:
        """The type of what is passed along instead: a stack for each term."""
        types = [StackType(t.entry) for t in self.root().terms.values()]
        return types[0] if len(types) == 1 else TupleType(tuple(types))


def _plan(functions: Mapping[str, Function], sums: Accumulators, smallest: int) -> dict[str, dict[int, _DeferredSum]]:
    """The sums of functions that are to be made later, by the positions of their parameters."""
    plan: dict[str, dict[int, _DeferredSum]] = {}
    for name, function in functions.items():
        plan[name] = {}
        for position, part in sums.returned[name].items():
            type_ = function.parameters[position].type
            assert isinstance(type_, TensorType)
            plan[name][position] = _DeferredSum(type_, part)
    for name, function in functions.items():
        definitions = {b.targets[0]: b.value for b in walk(function.body) if len(b.targets) == 1}
        for target, value in definitions.items():
            version = sums.version(target)
            if isinstance(value, OpCall) and version is not None:
                own = plan[name][version].root()
                term = _term(value, target, definitions, sums)
                if term is None:
                    own.refused = True
                else:
                    own.terms[target] = term
            elif isinstance(value, Call) and isinstance(value.function, Global) and value.function.name in plan:
                for position, other in plan[value.function.name].items():
                    passed = sums.version(value.arguments[position])
                    if passed is not None:
                        _merge(plan[name][passed].root(), other.root())
    products = [t for s in _root_sums(plan) for t in s.terms.values() if t.product is not None]
    longest = max(SHORT, *(likely(_size(t.types)) for t in products)) if products else SHORT
    for own_sums in plan.values():
        for position, each in list(own_sums.items()):
            root = each.root()
            terms = root.terms.values()
            long = any(t.is_whole and likely(_size(t.types)) > longest for t in terms)
            if root.refused or not terms or long or likely(dims.product(root.type.shape)) < smallest:
                del own_sums[position]
    return {name: own_sums for name, own_sums in plan.items() if own_sums}


def _root_sums(plan: Mapping[str, Mapping[int, _DeferredSum]]) -> list[_DeferredSum]:
    return [each.root() for own in plan.values() for each in own.values()]


def _merge(a: _DeferredSum, b: _DeferredSum) -> None:
    if a is not b:
        a.terms.update(b.terms)
        a.refused = a.refused or b.refused
        b.merged = a


def _term(call: OpCall, target: Var, definitions: Mapping[Var, Expr], sums: Accumulators) -> CollectedTerm | None:
    """The term that an operator adds to a version of a sum; None if it does not pay to collect it."""
    position = updated_operand(call, target, sums.origin)
    whole = elements(target)
    if position is None or whole is None:
        return None
    if call.operator == ADDITION:
        (term,) = (a for p, a in enumerate(call.arguments) if p != position)
        made = definitions.get(term) if isinstance(term, Var) else None
        if isinstance(made, OpCall) and lookup(made.operator).batching.summed is not None:
            types = _types(made.arguments)
            if types is not None and exceeds(whole, dims.multiply(2, _size(types))):
                found = CollectedTerm(types, made.arguments, product=made)
                if total_type(found, ROWS[0]) == target.type:
                    return found
        types = _types((term,))
        return None if types is None else CollectedTerm(types, (term,), update=call, position=position)
    others = tuple(a for p, a in enumerate(call.arguments) if p != position)
    types = _types(others)
    if types is None or exceeds(dims.multiply(2, _size(types)), whole):
        return None
    return CollectedTerm(types, others, update=call, position=position)


def _types(atoms: Sequence[Atom]) -> tuple[TensorType, ...] | None:
    types = tuple(a.type for a in atoms if isinstance(a, Var | Constant) and isinstance(a.type, TensorType))
    return types if len(types) == len(atoms) else None


def _size(types: Sequence[TensorType]) -> Dim:
    return dims.total(dims.product(t.shape) for t in types)


# ---- the change


class _SumDeferral:
    """The sums of one function. Versions of its own sums become stacks; calls from outside of a recursion get new
    ones."""

    def __init__(
        self,
        plans: Mapping[str, Mapping[int, _DeferredSum]],
        sums: Accumulators | None,
        function: Function,
        module: Module,
    ) -> None:
        self.plans, self.sums, self.original, self.module = plans, sums, function, module
        self.own = plans.get(function.name, {})
        self.vars: dict[Var, Var] = {}

    def _sum(self, atom: Atom) -> _DeferredSum | None:
        """The sum of this function that an atom is a version of."""
        version = self.sums.version(atom) if self.sums is not None else None
        return self.own.get(version) if version is not None else None

    def _type(self, var: Var) -> Type | None:
        origin = self.sums.origin.get(var) if self.sums is not None else None
        if isinstance(origin, tuple) and isinstance(var.type, TupleType):
            items = []
            for part, type_ in zip(origin, var.type.items, strict=True):
                own = self.own.get(part) if isinstance(part, int) else None
                items.append(type_ if own is None else own.stacks())
            return TupleType(tuple(items))
        own = self._sum(var)
        return var.type if own is None else own.stacks()

    def var(self, var: Var) -> Var:
        """The variable at its new type."""
        if var not in self.vars:
            type_ = self._type(var)
            self.vars[var] = var if type_ == var.type else Var(var.name, type_, var.span)
        return self.vars[var]

    def atom(self, atom: Atom) -> Atom:
        return self.var(atom) if isinstance(atom, Var) else atom

    def function(self) -> Function:
        """The changed function."""
        old = self.original
        result = old.result
        for each in self.own.values():
            if isinstance(result, TupleType):
                items = (each.stacks() if j == each.part else t for j, t in enumerate(result.items))
                result = TupleType(tuple(items))
            else:
                result = each.stacks()
        parameters, body = tuple(map(self.var, old.parameters)), self.block(old.body)
        signature = old.signature if parameters == old.parameters else ()
        return Function(old.name, parameters, body, old.label, result, signature, old.documentation, old.span, old.rule)

    def block(self, block: Block) -> Block:
        out: list[Binding] = []
        for binding in block.bindings:
            match binding.value:
                case OpCall() if len(binding.targets) == 1 and self._sum(binding.targets[0]) is not None:
                    self._push(binding.targets[0], binding.value, out)
                case Call(Global(name)) as call if name in self.plans:
                    self._call(binding.targets[0], call, out)
                case value:
                    made = map_parts(value, atom=self.atom, block=self.block, var=self.var)
                    out.append(Binding(tuple(map(self.var, binding.targets)), made))
        return Block(tuple(out), map_terminator(block.terminator, self.atom))

    def _push(self, target: Var, call: OpCall, out: list[Binding]) -> None:
        """The sum with something added: its stack with one more entry."""
        own = self._sum(target)
        assert own is not None and self.sums is not None
        position = updated_operand(call, target, self.sums.origin)
        assert position is not None
        terms, term = own.root().terms, own.root().terms[target]
        emitter = Emitter(call.span)
        entry = pack_atoms(emitter, [self.atom(a) for a in term.operands], term.entry)
        before = self.atom(call.arguments[position])
        stacks = unpack_atom(emitter, before, [StackType(t.entry) for t in terms.values()])
        number = list(terms).index(target)
        stacks[number] = emitter.bind(StackPush(stacks[number], entry, call.span), StackType(term.entry), "terms").atom
        pack_atoms(emitter, stacks, own.stacks())
        out += [*emitter.bindings[:-1], Binding((self.var(target),), emitter.bindings[-1].value)]

    def _call(self, target: Var, call: Call, out: list[Binding]) -> None:
        """A call of a function with sums: it passes the stacks of this function's own sums, and empty ones for
        others."""
        assert isinstance(call.function, Global)
        name = call.function.name
        callee = self.module.functions[name]
        assert isinstance(callee, Function) and callee.result is not None
        emitter = Emitter(call.span)
        arguments, started = [self.atom(a) for a in call.arguments], dict[int, tuple[_DeferredSum, Atom]]()
        types, parts = list(callee.type.parameters), list(_parts(callee.result))
        for position, each in self.plans[name].items():
            types[position] = parts[each.part] = each.stacks()
            if self._sum(call.arguments[position]) is None:
                entries = [StackType(t.entry) for t in each.root().terms.values()]
                empty = [emitter.bind(StackNew(t.element), t, "terms").atom for t in entries]
                started[each.part] = each, arguments[position]
                arguments[position] = pack_atoms(emitter, empty, each.stacks())
        result = TupleType(tuple(parts)) if isinstance(callee.result, TupleType) else parts[0]
        made = Call(Global(name, FunctionType(tuple(types), result)), tuple(arguments), call.span)
        if not started:
            out.append(Binding((self.var(target),), made))
            return
        returned = emitter.bind(made, result, target.name).atom
        items = [returned]
        if isinstance(callee.result, TupleType):
            items = [emitter.bind(Project(returned, j, call.span), t, "part").atom for j, t in enumerate(parts)]
        for part, (each, start) in started.items():
            items[part] = added_up(emitter, each.type, list(each.root().terms.values()), start, items[part])
        whole: Expr = MakeTuple(tuple(items), call.span) if isinstance(callee.result, TupleType) else items[0]
        out += [*emitter.bindings, Binding((self.var(target),), whole)]


def _parts(type_: Type) -> tuple[Type, ...]:
    return type_.items if isinstance(type_, TupleType) else (type_,)
