"""The functions that the transform makes of whole functions: forward and backward versions, and derivatives.

    f(p..) = e        f_forward(p..) = (e, tape)        f_backward(tape, seed, p'..) = p'..

A recursive function that passes a tensor on to itself has it as a parameter of its backward version, too, instead of on
each tape (`passed_on`).

The backward version takes the cotangents of the parameters so far and returns them with its contribution, so that a
recursion that reads a large tensor piece by piece adds into one. The cotangents of stacks are only returned.

A derivative of a function that does not call itself is one body: the forward bindings, then the backward bindings,
without what is not needed. That of a recursive one calls its two versions.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs
import numpy as np

from relay.ad.blocks import Reversal
from relay.ad.branches import unpacking
from relay.ad.checkpointing.lines import divide_lines
from relay.ad.checkpointing.loops import DEEPEST, divide_loops, tape_bytes
from relay.ad.conditions import separate_conditions
from relay.ad.cotangents import Cotangent, Cotangents, pack, pack_type, type_of
from relay.ad.interface import Interface, make_tuple
from relay.ad.passed_on import invariant_parameters
from relay.ad.print_erasure import PrintEraser
from relay.ad.references import References, ShadowReferences, count_references, references_in
from relay.ad.scopes import Scope, live_bindings, residuals
from relay.ad.shadows import SWEEP, Sweep
from relay.ad.sizes import hand_over, handed_type, has_any, with_sizes
from relay.ad.tapes import Plan, Seeds
from relay.errors import DifferentiationError, InternalError, Span
from relay.ir.analysis.tail_positions import tail_branch
from relay.ir.derivative import output_type
from relay.ir.dims import ANY
from relay.ir.expr import (
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
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    If,
    LoopLabel,
    MakeTuple,
    Match,
    Print,
    Project,
    RefNew,
    RefWrite,
    Shadow,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_function, map_blocks, substitute
from relay.ir.traverse import walk
from relay.ir.types import (
    INT64,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TupleType,
    Type,
    scalar,
)
from relay.operator import Emitter

_NONE: Mapping[str, str] = MappingProxyType({})


@attrs.frozen
class Versions:
    """The forward and backward versions of a function, differentiated with respect to the parameters `active`.

    The cotangents of the result for which `seeded` is false are known to be zero; the backward version takes the
    others. `given` are the types of the cotangents that it takes beside tape and seed, `cotangent_types` of those it
    returns. Of the latter, without stacks, it takes those for which `taken` is true. After them it takes the values of
    the parameters `invariants`, and at the end the sweep, if `references` have shadows.
    """

    function: Function
    active: tuple[int, ...]
    forward: Global
    backward: Global
    tape: DataType
    result: Type
    paired: bool
    seeded: tuple[bool, ...]
    taken: tuple[bool, ...]
    given: tuple[Type, ...]
    cotangent_types: tuple[Type, ...]
    invariants: tuple[int, ...]
    references: References


class ModuleReversal:
    """Functions of a module, those made so far included."""

    def __init__(self, functions: dict[str, Function | Derivative], data: Sequence[DataDefinition]) -> None:
        self.functions = functions
        self.definitions: list[DataDefinition] = []
        self.cotangents = Cotangents(self.fresh_name)
        self.interface = Interface(self.cotangents)
        self._data = data
        self._taken = {d.name for d in data}
        self._numbers: dict[str, int] = {}
        self._effects: dict[str, bool] = {}
        self.references = References(self.cotangents, self.fresh_name)
        self._versions: dict[tuple[object, ...], Versions] = {}
        self._writing: set[str] = set()
        self._origins: dict[str, str] = {}
        self._queue: deque[Versions] = deque()
        self._recomputed = 0
        self._silent: dict[str, str] = {}

    def fresh_name(self, name: str) -> str:
        """A name for a function or data type that is not taken."""
        number = self._numbers.get(name, 1)
        candidate = name if number == 1 else f"{name}_{number}"
        while candidate in self._taken or candidate in self.functions:
            number += 1
            candidate = f"{name}_{number}"
        self._numbers[name] = number + 1
        self._taken.add(candidate)
        return candidate

    def next_number(self) -> int:
        """A number for a call that is computed again."""
        self._recomputed += 1
        return self._recomputed

    def data_types(self) -> list[DataDefinition]:
        """The data types made so far."""
        return [*self.definitions, *self.cotangents.definitions, *self.references.definitions]

    # ---- derivatives

    def derive(self, derivative: Derivative) -> None:
        """Replace a derivative of a finished function by a function, and add what it calls."""
        self._effects.clear()
        function = self.function(derivative.of)
        depth = self._depth(derivative)
        if depth:
            function, made = self._divide_loops(function, depth)
            self.functions.update(made)
        function = self._divide_lines(derivative, function)
        self.functions[derivative.name] = self._derivative(derivative, function, self._needs_shadows(function))
        while self._queue:
            self._make_versions(self._queue.popleft())
        self.functions.update(self.cotangents.functions)

    def _depth(self, derivative: Derivative) -> int:
        """The number of times that the derivative's loops are divided, so that their states take the place of tapes.

        Raises DifferentiationError if the tapes do not fit in the allowed bytes.
        """
        memory = derivative.grad.memory
        if isinstance(memory, str):
            return 0 if memory == "store" else 1
        smallest = math.inf
        for depth in range(DEEPEST + 1):
            trial = ModuleReversal(dict(self.functions), self._data)
            grad = attrs.evolve(derivative.grad, memory="store")  # type: ignore[misc]
            function = self.function(derivative.of)
            if depth:
                function, made = trial._divide_loops(function, depth)
                trial.functions |= made
            trial.derive(attrs.evolve(derivative, grad=grad, of=function.name))  # type: ignore[misc]
            size = tape_bytes(f for n, f in trial.functions.items() if n not in self.functions or n == derivative.name)
            if size <= memory:
                return depth
            smallest = min(size, smallest)
        text = f"at least {smallest:.0f} bytes" if smallest < math.inf else "an amount that is known only at run time"
        raise DifferentiationError(
            f"the tapes of the derivative need {text}, but memory={memory}",
            derivative.span,
            help='memory="recompute" takes about the square root of the number of rounds',
        )

    def _divide_lines(self, derivative: Derivative, function: Function) -> Function:
        """The function in parts that are computed again, where its values do not fit in the allowed bytes.

        Raises DifferentiationError if the parts do not, either.
        """
        memory = derivative.grad.memory
        if isinstance(memory, str) or function.rule is not None or self._is_recursive(function):
            return function
        trial = ModuleReversal(dict(self.functions), self._data)
        trial.functions[function.name] = function
        grad = attrs.evolve(derivative.grad, memory="store")  # type: ignore[misc]
        trial.derive(attrs.evolve(derivative, grad=grad, of=function.name))  # type: ignore[misc]
        division = divide_lines(function, memory, trial.function(derivative.name), self.fresh_name)
        if division.kept > memory:
            raise DifferentiationError(
                f"the values that the derivative keeps need at least {division.kept:.0f} bytes, but memory={memory}",
                derivative.span,
                help="these are the states between parts that are computed again, and the values of one part",
            )
        self.functions.update(division.parts)
        return division.function

    def _divide_loops(self, function: Function, depth: int) -> tuple[Function, dict[str, Function]]:
        called = [
            f for f in self.reachable_functions(callees(function)) if isinstance(f, Function) and f is not function
        ]
        return divide_loops(function, called, depth, self.fresh_name)

    def function(self, name: str) -> Function:
        """A finished function."""
        found = self.functions.get(name)
        if not isinstance(found, Function):
            raise InternalError(f"{name} is called, and is not a finished function")
        return found

    def _derivative(self, derivative: Derivative, function: Function, shadowed: bool) -> Function:
        """forward; backward; the gradients. See `relay.ir.derivative`. References are pairs, unless `shadowed` or that
        is not possible."""
        assert function.result is not None
        grad = derivative.grad
        called = self._is_recursive(function) or function.rule is not None
        parameters, body, result = _single_exit(_forwarding_function(function) if called else function)
        body = separate_conditions(body, self.function)
        seed, cotangent = _seed(derivative, function.result)
        given = {var: type_of(var) for var in parameters}
        wrt = grad.wrt if grad.wrt is not None else tuple(range(len(parameters)))
        shared = [type_ for type_ in given.values() if self._may_be_shared(type_, derivative, [*given.values()])]
        inputs = [parameters[i] for i in wrt if self.cotangents.exists(given[parameters[i]])]
        linked = self._aliasing_pairs(given, shared)
        if not shadowed:
            reversal = Reversal(self, self.references, None, body, repeated=False)
            reversal.track(inputs, (result,), linked)
            received = {var: Var(var.name, type_, var.span) for var, type_ in given.items() if var in reversal.paired}
            leaves = result in reversal.paired and bool(grad.keeping or grad.with_value)
            if not all(self.references.can_receive(given[var], shared) for var in received) or (
                leaves and not self.references.can_return(function.result)
            ):
                return self._derivative(derivative, function, shadowed=True)
            before = self.references.bind_outer_pairs(received, derivative.span)
        else:
            sweep, begin = Sweep.begin(derivative.name)
            reversal = Reversal(self, self._shadow_references(derivative.name), sweep, body, repeated=False)
            reversal.track(inputs, (result,), linked)
            received, leaves, before = {}, False, [begin]
        scope = Scope(self.cotangents, [*parameters, *(t for b in body.bindings for t in b.targets)], None)
        plan = reversal.block(body, scope, Seeds(exit=(cotangent,)))
        emitter = scope.emitter
        emitter.span = derivative.span
        if isinstance(seed, Var):
            plan.forward += _same_size(seed, result, function.result, grad, derivative.span)
        outputs = [
            self.interface.external_cotangent(
                emitter, type_of(parameters[i]), scope.current_cotangent(parameters[i]), parameters[i]
            )
            for i in wrt
        ]
        if grad.has_aux and len(outputs) > 1:
            outputs = [make_tuple(emitter, outputs)]
        if leaves:
            result = self.references.unpair_value(emitter, result, function.result)
        final = _returned_value(emitter, derivative, result, function.result, outputs)
        code = live_bindings([*before, *plan.forward, *emitter.bindings], [final], self._is_effect)
        parameters = tuple(received.get(var, var) for var in parameters)
        label = LoopLabel(derivative.name)
        return Function(
            derivative.name,
            (*parameters, seed) if isinstance(seed, Var) else parameters,
            Block(tuple(code), Exit(label, (final,), derivative.span)),
            label,
            derivative.type.result,
            span=derivative.span,
        )

    def _aliasing_pairs(self, given: Mapping[Var, Type], shared: Sequence[Type]) -> list[list[Var]]:
        """The pairs of parameters that may hold the same reference. `shared` are those types whose references may be
        given twice; a reference may also be what another one holds."""
        held = {v: set(references_in(t)) for v, t in given.items() if self.references.holds(t)}
        alone = {v for v in held if given[v] not in shared and isinstance(given[v], RefType) and len(held[v]) == 1}
        return [[v, w] for v, w in itertools.combinations(held, 2) if held[v] & held[w] and not {v, w} <= alone]

    def _may_be_shared(self, type_: Type, derivative: Derivative, every: Sequence[Type]) -> bool:
        """True if a reference in values of a type may be passed to a derivative twice, among values of `every` type.
        In calls with references that the calling function has made it is not."""
        if not self.references.holds(type_) or not any(count_references(r, every) > 1 for r in references_in(type_)):
            return False
        calls = [
            (function, binding.value)
            for function in self.functions.values()
            if isinstance(function, Function)
            for binding in walk(function.body)
            if isinstance(binding.value, Call)
            and isinstance(binding.value.function, Global)
            and binding.value.function.name == derivative.name
        ]
        for function, call in calls:
            new = {b.targets[0] for b in walk(function.body) if isinstance(b.value, RefNew)}
            cells = [a for a in call.arguments if any(True for _ in references_in(type_of(a)))]
            if len(set(cells)) < len(cells) or not new.issuperset(cells):
                return True
        return not calls

    def _shadow_references(self, slot: str) -> References:
        return ShadowReferences(self.cotangents, self.fresh_name, slot)

    def _needs_shadows(self, function: Function) -> bool:
        """True if the references in a function and its callees cannot be pairs: a derivative in them has put shadows
        behind them, or the rule of a function gets them as they are."""
        for found in self.reachable_functions([function.name]):
            if not isinstance(found, Function):
                continue
            types = [*map(type_of, found.parameters), *([] if found.result is None else [found.result])]
            if isinstance(found.rule, CustomGradient) and any(map(self.references.holds, types)):
                return True
            if any(isinstance(b.value, Shadow) for b in walk(found.body)):
                return True
        return False

    # ---- forward and backward versions

    def callee(
        self,
        name: str,
        active: tuple[int, ...],
        paired: bool,
        seeded: tuple[bool, ...],
        again: tuple[bool, ...] | None = None,
        slot: str | None = None,
    ) -> Versions:
        """The two versions of a function, to be made later if they are new. See `ModuleContext.callee`."""
        found = self._versions.get((name, active, paired, seeded, again, slot))
        if found is not None:
            return found
        function = self.function(name)
        if again is not None:
            function = PrintEraser(self.functions, self.fresh_name, self._silent).silent_copy(function)
        assert function.result is not None
        tape = DataDefinition(self.fresh_name(f"{name}_tape"))
        self.definitions.append(tape)
        forward, backward = self.fresh_name(f"{name}_forward"), self.fresh_name(f"{name}_backward")
        self._origins[forward] = name
        references = self.references if slot is None else self._shadow_references(slot)
        types = tuple(
            references.paired_type(type_of(p)) if i in active else type_of(p) for i, p in enumerate(function.parameters)
        )
        result = references.paired_type(function.result) if paired else function.result
        if paired or any(references.holds(type_of(function.parameters[i])) for i in active):
            self._writing.add(backward)
        returned = tuple(leaf for i in active for leaf in self.cotangents.leaves(types[i]))
        given = tuple(t for t in returned if not isinstance(t, StackType))
        taken = again if again is not None else (True,) * len(given)
        seeds = tuple(t for t, known in zip(self.cotangents.leaves(result), seeded, strict=True) if known)
        given = tuple(t for t, wanted in zip(given, taken, strict=True) if wanted)
        component = self._component(function)
        constant = isinstance(function.rule, CustomGradient)  # the parameters' own values have no cotangents
        kept = invariant_parameters(name, self.function, component) if component and not constant else ()
        values = [types[i] for i in kept]
        if slot is not None:
            values.append(SWEEP)
        versions = Versions(
            function,
            active,
            Global(forward, FunctionType(types, TupleType((result, DataType(tape))))),
            Global(backward, FunctionType((DataType(tape), *seeds, *given, *values), pack_type(returned))),
            DataType(tape),
            result,
            paired,
            seeded,
            taken,
            given,
            returned,
            kept,
            references,
        )
        self._versions[name, active, paired, seeded, again, slot] = versions
        self._queue.append(versions)
        return versions

    def _make_versions(self, versions: Versions) -> None:
        parameters, body, result = _single_exit(versions.function)
        body = separate_conditions(body, self.function)
        cotangents = self.cotangents
        slot = versions.references.slot
        sweep = None if slot is None else Sweep(Var("sweep", SWEEP), slot)
        reversal = Reversal(self, versions.references, sweep, body, repeated=True)
        active = [parameters[i] for i in versions.active]
        cells = [p for p in active if versions.references.holds(type_of(p))]
        held = [result] if versions.paired and isinstance(result, Var) else []
        reversal.track([*active, *held], (result, *cells))
        scope = Scope(cotangents, [*parameters, *(t for b in body.bindings for t in b.targets)], None)
        ends = zip(cotangents.variables(versions.result, "seed"), versions.seeded, strict=True)
        seed = [v if known else None for v, known in ends]
        seeds = [v for v in seed if v is not None]
        given = [Var("so_far", t) for t in versions.given]
        rest, taken = iter(given), iter(versions.taken)
        for parameter in active:
            leaves = [
                next(rest) if not isinstance(t, StackType) and next(taken) else None
                for t in cotangents.leaves(type_of(parameter))
            ]
            scope.known[parameter] = cotangents.unflatten(leaves, type_of(parameter))
        plan = reversal.block(body, scope, Seeds(exit=(cotangents.unflatten(seed, versions.result),)))
        outputs = [
            leaf
            for parameter in active
            for leaf in cotangents.dense(
                scope.emitter, scope.current_cotangent(parameter), type_of(parameter), parameter
            )
        ]
        final = pack(scope.emitter, outputs)
        code = live_bindings(scope.emitter.bindings, [final], self.is_effect)
        code = with_sizes(code, [final], plan.sizes())
        kept = [parameters[i] for i in versions.invariants]
        taped = [v for v in residuals(code, [final], [*parameters, *plan.available_variables()]) if v not in kept]
        name = versions.tape.definition.name
        versions.tape.definition.constructors = (Constructor(name, tuple(handed_type(type_of(v)) for v in taped)),)
        self._add_forward(versions, parameters, plan, result, taped)
        self._add_backward(versions, seeds + given, code, final, taped, kept, sweep)

    def _add_forward(
        self, versions: Versions, parameters: tuple[Var, ...], plan: Plan, result: Atom, taped: Sequence[Var]
    ) -> None:
        emitter = Emitter(versions.function.span)
        definition = versions.tape.definition
        values = hand_over(emitter, taped, [type_of(v) for v in taped])
        tape = emitter.bind(Construct(definition, definition.name, tuple(values)), versions.tape, "tape").atom
        both = emitter.bind(MakeTuple((result, tape)), TupleType((versions.result, versions.tape)), "both").atom
        rule = versions.function.rule
        rule = attrs.evolve(rule, depth=rule.depth + 1) if isinstance(rule, CustomGradient) else None  # type: ignore[misc]
        self._add(versions.forward, parameters, [*plan.forward, *emitter.bindings], both, versions.function, rule)

    def _add_backward(
        self,
        versions: Versions,
        parameters: list[Var],
        code: list[Binding],
        final: Atom,
        taped: Sequence[Var],
        kept: Sequence[Var],
        sweep: Sweep | None,
    ) -> None:
        tape, result = Var("tape", versions.tape), Var("cotangents", pack_type(versions.cotangent_types))
        again = {v: Var(v.name, v.type, v.span) for v in kept}
        inside = substitute(Block(tuple(code), Yield((final,))), again)
        arm = unpacking(versions.tape.definition.name, list(taped), inside)
        body = [Binding((result,), Match(tape, (arm,)))]
        last = () if sweep is None else (sweep.reference,)
        self._add(versions.backward, (tape, *parameters, *again.values(), *last), body, result, versions.function)

    def _add(
        self,
        name: Global,
        parameters: tuple[Var, ...],
        body: list[Binding],
        result: Atom,
        origin: Function,
        rule: CustomGradient | None = None,
    ) -> None:
        assert isinstance(name.type, FunctionType)
        label = LoopLabel(name.name)
        block = Block(tuple(body), Exit(label, (result,)))
        made = Function(name.name, parameters, block, label, name.type.result, span=origin.span, rule=rule)
        self.functions[name.name] = made

    # ---- facts about functions

    def _is_recursive(self, function: Function) -> bool:
        return any(f is function for f in self.reachable_functions(callees(function)))

    def _component(self, function: Function) -> set[str]:
        """The functions that a function calls and that call it, itself among them; none if it is not recursive."""
        callers: dict[str, list[str]] = {}
        for found in self.reachable_functions(callees(function)):
            if isinstance(found, Function):
                for callee in callees(found):
                    callers.setdefault(self._origins.get(callee, callee), []).append(found.name)
        members: set[str] = set()
        pending = [function.name]
        while pending:
            for caller in callers.get(pending.pop(), ()):
                if caller not in members:
                    members.add(caller)
                    pending.append(caller)
        return members if function.name in members else set()

    def reachable_functions(self, names: Sequence[str]) -> list[Function | Derivative]:
        """These functions and those that they call; instead of a forward version, the function that it is of."""
        return reachable_functions(self.functions, names, self._origins)

    def is_effect(self, expression: Expr) -> bool:
        """True if an expression of backward code changes a cell, or makes a size."""
        if isinstance(expression, Call) and isinstance(expression.function, Global):
            return expression.function.name in self._writing
        return isinstance(expression, RefWrite | BindDim)

    def _is_effect(self, expression: Expr) -> bool:
        """True if an expression has an effect itself: something is written or checked, here or in a called function."""
        if not isinstance(expression, Call) or not isinstance(expression.function, Global):
            return isinstance(expression, Assert | Print | RefWrite | BindDim)
        name = expression.function.name
        if name not in self._effects:
            bodies = [f.body for f in self.reachable_functions([name]) if isinstance(f, Function)]
            inside = any(isinstance(b.value, Assert | Print | RefWrite) for body in bodies for b in walk(body))
            self._effects[name] = inside or name in self._writing
        return self._effects[name]


def _same_size(seed: Var, result: Atom, type_: Type, grad: Grad, span: Span | None) -> list[Binding]:
    """Check that a cotangent has the size of its value, where that is known only at run time."""
    emitter = Emitter(span)
    output = output_type(type_, grad)
    if isinstance(type_, TupleType) and has_any(output):
        result = emitter.bind(Project(result, (grad.output or 0) % len(type_.items), span), output, "output").atom
    for axis, dim in enumerate(output.shape):
        if dim is ANY:
            sizes = (emitter.bind(AxisSize(v, axis, span), scalar(INT64), "size") for v in (seed, result))
            given, wanted = sizes
            same = (given == wanted).atom
            emitter.emit((), Assert(same, "the cotangent must have the size of the result", span))
    return emitter.bindings


def reachable_functions(
    functions: Mapping[str, Function | Derivative], names: Sequence[str], origins: Mapping[str, str] = _NONE
) -> list[Function | Derivative]:
    """These functions and those that they call, without those that only a derivative calls."""
    seen: dict[str, Function | Derivative] = {}
    pending = [origins.get(n, n) for n in names]
    while pending:
        name = pending.pop()
        if name not in seen and name in functions:
            found = seen[name] = functions[name]
            if isinstance(found, Function):
                pending += [origins.get(n, n) for n in (*callees(found), *found.rule_functions)]
    return list(seen.values())


def callees(function: Function) -> list[str]:
    """The names of the functions that a function calls."""
    return [
        b.value.function.name
        for b in walk(function.body)
        if isinstance(b.value, Call) and isinstance(b.value.function, Global)
    ]


def _forwarding_function(function: Function) -> Function:
    """A function that does nothing but call this one."""
    parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    result, label = Var("result", function.result), LoopLabel(function.name)
    call = Call(Global(function.name, function.type), parameters, function.span)
    body = Block((Binding((result,), call),), Exit(label, (result,)))
    return Function(function.name, parameters, body, label, function.result, span=function.span)


def _single_exit(function: Function) -> tuple[tuple[Var, ...], Block, Atom]:
    """The parameters and body of a fresh copy that returns nowhere but at the end of its body, and what it returns."""
    copy = copy_function(function)
    body = copy.body
    if tail_branch(body) is not None:
        result = Var("result", function.result)
        body = _with_yields(body, result)
        body = Block(body.bindings, Exit(copy.label, (result,)))
    if not isinstance(body.terminator, Exit):
        raise InternalError(f"the body of {function.name} does not return")
    return copy.parameters, body, body.terminator.values[0]


def _with_yields(block: Block, result: Var) -> Block:
    """A block whose arms return, changed to one whose arms yield. `result` is bound to what they returned."""
    tail = tail_branch(block)
    if tail is None:
        end = block.terminator
        return Block(block.bindings, Yield(end.values, end.span) if isinstance(end, Exit) else end)
    conditions = {a.condition for a in tail.arms} if isinstance(tail, If) else set()

    def arm(body: Block) -> Block:
        return body if body in conditions else _with_yields(body, Var(result.name, result.type))

    changed = Binding((result,), map_blocks(tail, arm))
    return Block((*block.bindings[:-1], changed), Yield((result,)))


def _seed(derivative: Derivative, result: Type) -> tuple[Atom, Cotangent]:
    """The cotangent of what is differentiated, a parameter or ones, and with it that of the whole result."""
    output = output_type(result, derivative.grad)
    seed: Atom = Var("seed", output, derivative.span)
    if not derivative.grad.seedable:
        seed = Constant(np.ones(output.dims, output.dtype), derivative.span)
    if not isinstance(result, TupleType):
        return seed, seed
    parts: list[Cotangent] = [None] * len(result.items)
    parts[derivative.grad.output or 0] = seed
    return seed, tuple(parts)


def _returned_value(
    emitter: Emitter, derivative: Derivative, result: Atom, result_type: Type, gradients: Sequence[Atom]
) -> Atom:
    """The value that a derivative returns: gradients, components of the result that it keeps, and the result."""
    grad, outputs = derivative.grad, list(gradients)
    for position in grad.keeping:
        if isinstance(result_type, TupleType):
            item, index = result_type.items[position], position % len(result_type.items)
            outputs.append(emitter.bind(Project(result, index, derivative.span), item, "kept").atom)
        else:
            outputs.append(result)
    final = outputs[0] if len(outputs) == 1 else make_tuple(emitter, outputs)
    return make_tuple(emitter, [result, final]) if grad.with_value else final
