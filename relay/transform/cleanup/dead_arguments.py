"""Dead-argument elimination: functions take only needed parameters, and return only needed results.

    fn g(a, unused) { .. (r, s) }; t = g(x, y); u = t.0        fn g(a) { .. (r,) }; t = g(x); u = t.0

A parameter is needed if the function's results or effects are made of it; passing it to the function itself does not
count. A call needs an argument if the call is needed and the parameter is: the least solution over all functions, found
by one walk over the graph of needs (`dead_code`). A part of a returned tuple is needed if a call's result is used as a
whole, or if something needed depends on this part; recursive calls whose result is returned again do not count. The
entry, functions that are differentiated, and those that rules name keep their types.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TypeAlias

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    Module,
    Project,
    Var,
)
from relay.ir.rebuild import map_parts
from relay.ir.traverse import all_blocks, operands, terminator_operands
from relay.ir.types import TupleType
from relay.transform.analysis.effects import effectful
from relay.transform.analysis.graph import references
from relay.transform.cleanup.dead_code import Need, Needs, Sweep, drop_unreachable
from relay.transform.core.rebuilding import select, with_body, with_functions
from relay.transform.module_pass import pass_about

_Construct: TypeAlias = If | Match | Loop


@pass_about(Call, Derivative)
def eliminate_dead_arguments(module: Module) -> Module:
    """The module with functions that neither take what they do not need nor return what nobody reads, and without what
    was computed for that."""
    module = drop_unreachable(module)
    while True:
        narrowed = drop_unreachable(_with_fewer_parts(_with_fewer_parameters(module)))
        if narrowed is module:
            return module
        module = narrowed


def _with_fewer_parameters(module: Module) -> Module:
    free = _changeable_functions(module)
    found = _ModuleNeeds(module, free)
    kept = {name: tuple(p in found.needed for p in f.parameters) for name, f in free.items()}
    if all(map(all, kept.values())):
        return module
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function):
            body = Sweep(found.needs[name], function.label, found.needed).block(function.body, ())
            function = _ArgumentElimination(kept, {}, with_body(function, body)).function()
        functions[name] = function
    return with_functions(module, functions)


def _with_fewer_parts(module: Module) -> Module:
    parts = _kept_parts(module, _changeable_functions(module))
    if not parts:
        return module
    functions: dict[str, Function | Derivative] = {}
    effects = effectful(module)
    for name, function in module.functions.items():
        if isinstance(function, Function):
            narrow = _ArgumentElimination({}, parts, function).function()
            if narrow.body is not function.body:  # what was made of parts that are gone is not needed
                needs = Needs(effects)
                needs.block(narrow.body, None, ())
                narrow = with_body(narrow, Sweep(needs, narrow.label).block(narrow.body, ()))
            function = narrow
        functions[name] = function
    return with_functions(module, functions)


def _changeable_functions(module: Module) -> dict[str, Function]:
    """The functions whose types may change: only calls mention them."""
    fixed = {module.entry}
    for function in module.functions.values():
        fixed.update(references(function) if isinstance(function, Derivative) else function.rule_functions)
    return {
        name: f
        for name, f in module.functions.items()
        if isinstance(f, Function) and name not in fixed and f.rule is None
    }


# ---- parameters


class _CallNeeds(Needs):
    """The needs in a function body, but for the arguments of calls of functions that may change."""

    def __init__(self, effects: frozenset[str], functions: Mapping[str, Function]) -> None:
        super().__init__(effects)
        self.functions = functions
        self.calls: list[tuple[Call, Function]] = []

    def binding(self, binding: Binding, owner: _Construct | None) -> None:
        match binding.value:
            case Call(Global(name)) as call if name in self.functions:
                self.calls.append((call, self.functions[name]))
                for target in binding.targets:
                    self.needs(target, call)
                if self.is_effect(call):
                    self.needs(None, owner, call)
            case _:
                super().binding(binding, owner)


class _ModuleNeeds:
    """All that is needed in a module, and the needs in each function."""

    def __init__(self, module: Module, free: Mapping[str, Function]) -> None:
        effects = effectful(module)
        self.needs: dict[str, _CallNeeds] = {}
        edges: dict[Need, list[Need]] = {}
        both: dict[Need, list[tuple[Need, Need]]] = {}  # what is needed once this and another thing are
        for name, function in module.functions.items():
            if not isinstance(function, Function):
                continue
            needs = self.needs[name] = _CallNeeds(effects, free)
            needs.block(function.body, None, ())
            for who, what in needs.edges.items():
                edges.setdefault(who, []).extend(what)
            for call, callee in needs.calls:
                for argument, parameter in zip(call.arguments, callee.parameters, strict=True):
                    both.setdefault(call, []).append((parameter, argument))
                    both.setdefault(parameter, []).append((call, argument))
        self.needed: set[Need] = {None}
        pending: list[Need] = [None]
        while pending:
            one = pending.pop()
            then = [what for other, what in both.get(one, ()) if other in self.needed]
            for need in (*edges.get(one, ()), *then):
                if need not in self.needed:
                    self.needed.add(need)
                    pending.append(need)


# ---- parts of results


class _PartNeeds(Needs):
    """The needs in a function body, with those of the parts that functions return: each has its own variable in
    `parts`."""

    def __init__(self, effects: frozenset[str], function: Function, parts: Mapping[str, Sequence[Var]]) -> None:
        super().__init__(effects)
        self.function = function
        self.parts = parts
        self.results: dict[Var, str] = {}
        self.tuples: dict[Var, MakeTuple] = {}

    def binding(self, binding: Binding, owner: _Construct | None) -> None:
        match binding.value:
            case Project(Var() as whole, index) if whole in self.results:
                self.needs(binding.targets[0], whole, self.parts[self.results[whole]][index])
                return
            case Call(Global(name)) if name in self.parts:
                self.results[binding.targets[0]] = name
            case MakeTuple() as made:
                self.tuples[binding.targets[0]] = made
            case _:
                pass
        super().binding(binding, owner)

    def block(self, block: Block, owner: _Construct | None, targets: tuple[Var, ...]) -> None:
        end, own = block.terminator, self.parts.get(self.function.name)
        if own is None or not isinstance(end, Exit) or end.label is not self.function.label:
            super().block(block, owner, targets)
            return
        super().block(Block(block.bindings, Exit(end.label, (), end.span)), owner, targets)
        (value,) = end.values
        made = self.tuples.get(value) if isinstance(value, Var) else None
        if made is None:
            self.needs(None, value)
            return
        for part, item in zip(own, made.items, strict=True):
            self.needs(part, item)


def _kept_parts(module: Module, functions: Mapping[str, Function]) -> dict[str, tuple[int, ...]]:
    """The parts that are needed of each function that returns a tuple of which some are not."""
    parts = {
        name: [Var(f"part{i}", item) for i, item in enumerate(f.result.items)]
        for name, f in functions.items()
        if isinstance(f.result, TupleType)
    }
    for caller, function in module.functions.items():
        if isinstance(function, Function) and parts:
            for name in _used_whole(caller, function, parts):
                parts.pop(name, None)
    if not parts:
        return {}
    effects = effectful(module)
    edges: dict[Need, list[Need]] = {}
    for function in module.functions.values():
        if isinstance(function, Function):
            needs = _PartNeeds(effects, function, parts)
            needs.block(function.body, None, ())
            for who, what in needs.edges.items():
                edges.setdefault(who, []).extend(what)
    needed: set[Need] = {None}
    pending: list[Need] = [None]
    while pending:
        for need in edges.get(pending.pop(), ()):
            if need not in needed:
                needed.add(need)
                pending.append(need)
    kept = {name: tuple(i for i, part in enumerate(own) if part in needed) for name, own in parts.items()}
    return {name: read for name, read in kept.items() if len(read) < len(parts[name])}


def _used_whole(caller: str, function: Function, parts: Container[str]) -> Iterator[str]:
    """The functions among `parts` whose results this one uses otherwise than by parts, or returns as its own."""
    results = {target: name for target, name in _results(function) if name in parts}
    if not results:
        return
    for block in all_blocks(function.body):
        for binding in block.bindings:
            match binding.value:
                case Project(Var() as whole) if whole in results:
                    pass
                case value:
                    yield from (results[a] for a in operands(value) if isinstance(a, Var) and a in results)
        end = block.terminator
        returned = isinstance(end, Exit) and end.label is function.label
        for atom in terminator_operands(end):
            if isinstance(atom, Var) and atom in results and not (returned and results[atom] == caller):
                yield results[atom]


def _results(function: Function) -> Iterator[tuple[Var, str]]:
    for block in all_blocks(function.body):
        for binding in block.bindings:
            match binding.value:
                case Call(Global(name)):
                    yield binding.targets[0], name
                case _:
                    pass


# ---- the change


class _ArgumentElimination:
    """One function with its calls, and its own type, changed."""

    def __init__(
        self, kept: Mapping[str, tuple[bool, ...]], parts: Mapping[str, tuple[int, ...]], function: Function
    ) -> None:
        self.kept, self.parts, self.original = kept, parts, function
        self.own = parts.get(function.name)
        self.tuples: dict[Var, MakeTuple] = {}
        self.narrow: dict[Var, tuple[Var, tuple[int, ...]]] = {}  # results of calls that have fewer parts now

    def function(self) -> Function:
        function = self.original
        body = self.block(function.body)
        parameters = select(function.parameters, self.kept[function.name]) if function.name in self.kept else None
        result = function.result
        if self.own is not None:
            assert isinstance(result, TupleType)
            result = TupleType(tuple(result.items[i] for i in self.own))
        return Function(
            function.name,
            function.parameters if parameters is None else parameters,
            body,
            function.label,
            result,
            function.signature,
            function.documentation,
            function.span,
            function.rule,
        )

    def block(self, block: Block) -> Block:
        bindings = [made for b in block.bindings if (made := self.binding(b)) is not None]
        end = block.terminator
        if self.own is not None and isinstance(end, Exit) and end.label is self.original.label:
            return self._returning_block(bindings, end)
        return Block(tuple(bindings), end)

    def _returning_block(self, bindings: list[Binding], end: Exit) -> Block:
        """The block that returns those parts of its result that are read."""
        assert self.own is not None
        (value,) = end.values
        known = self.narrow.get(value) if isinstance(value, Var) else None
        if known is not None:
            return Block(tuple(bindings), Exit(end.label, (known[0],), end.span))
        type_ = self.original.result
        assert isinstance(type_, TupleType)
        items: list[Atom] = []
        made = self.tuples.get(value) if isinstance(value, Var) else None
        for index in self.own:
            if made is not None:
                items.append(made.items[index])
                continue
            part = Var("part", type_.items[index], end.span)
            bindings.append(Binding((part,), Project(value, index, end.span)))
            items.append(part)
        result = Var("parts", TupleType(tuple(type_.items[i] for i in self.own)), end.span)
        bindings.append(Binding((result,), MakeTuple(tuple(items), end.span)))
        return Block(tuple(bindings), Exit(end.label, (result,), end.span))

    def binding(self, binding: Binding) -> Binding | None:
        """The binding with its calls changed; None for a part that is not there any more."""
        value: Expr = binding.value
        match value:
            case Call(Global(name) as callee, arguments, span) if name in self.kept or name in self.parts:
                kept_arguments = select(arguments, self.kept[name]) if name in self.kept else arguments
                made = Call(callee, kept_arguments, span)
                if name not in self.parts:
                    return Binding(binding.targets, made)
                (target,) = binding.targets
                assert isinstance(target.type, TupleType)
                kept = self.parts[name]
                new = Var(target.name, TupleType(tuple(target.type.items[i] for i in kept)), target.span)
                self.narrow[target] = new, kept
                return Binding((new,), made)
            case MakeTuple():
                self.tuples[binding.targets[0]] = value
                return binding
            case Project(Var() as whole, index, span) if whole in self.narrow:
                new, kept = self.narrow[whole]
                if index not in kept:
                    return None
                return Binding(binding.targets, Project(new, kept.index(index), span))
            case _:
                return Binding(binding.targets, map_parts(value, block=self.block))
