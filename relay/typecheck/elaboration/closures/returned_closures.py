"""Closures returned by another program, linked into this one.

Such a function is a value of a data type of that program: a constructor for each function that it may be, with what
that has captured. A function of that program calls it. It becomes a part of this program, and the value a function that
calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from relay.errors import Span
from relay.ir.definition import DataClass
from relay.ir.effects import Effect, Effects
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    CustomGradient,
    Derivative,
    Exit,
    Function,
    Global,
    Lambda,
    LoopLabel,
    Module,
    Parameter,
    Rule,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.surface import Apply
from relay.ir.traverse import operands, walk
from relay.ir.types import DataDefinition, DataType, FunctionType, RefType, StackType, TupleType, Type, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    LocalFunction,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope


@attrs.frozen(eq=False, kw_only=True)
class ClosureClass(DataClass):
    """The `origin` of a data type that stands for functions. `applied`: the function of the program that calls its
    values, which are the last argument; None if no result of the program leads to them."""

    program: Module
    applied: str | None
    code: tuple[Var, Function] | None  # a function that calls a value, which is this variable
    effects: frozenset[str]
    function: Callable[[Any, bool], Any]  # what Python has for a value; whether it runs on the interpreter


def closure_class(type_: Type) -> ClosureClass | None:
    """The class of closures of a data type whose values are functions that can be called; None for another type."""
    known = prune(type_)
    origin = known.definition.origin if isinstance(known, DataType) else None
    return origin if isinstance(origin, ClosureClass) and origin.applied is not None else None


def holds_closures(type_: Type) -> bool:
    """True if values of a type contain functions that another program has selected at run time."""
    pending, seen = [type_], set[DataDefinition]()
    while pending:
        match prune(pending.pop()):
            case TupleType(items):
                pending += items
            case RefType(content) | StackType(content):
                pending.append(content)
            case DataType(definition) if definition not in seen:
                if isinstance(definition.origin, ClosureClass):
                    return True
                seen.add(definition)
                pending += [field for constructor in definition.constructors for field in constructor.fields]
            case _:
                pass
    return False


def calling_code(program: Module, applied: str) -> tuple[Var, Function]:
    """A function of the surface that calls a value, and the variable that it is."""
    itself, result, label = Var("chosen"), Var("result"), LoopLabel("chosen")
    types = program.functions[applied].type.parameters[:-1]
    parameters = tuple(Var(f"x{position}", type_) for position, type_ in enumerate(types))
    body = Block((Binding((result,), Apply(itself, parameters, ())),), Exit(label, (result,)))
    return itself, Function("chosen", parameters, body, label, None, tuple(Parameter() for _ in parameters))


def as_function(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue) -> LocalFunction | None:
    """The function that a value is, to pass on; None for a value of another type."""
    owner = closure_class(entity.type) if isinstance(entity, DynamicValue) else None
    if owner is None or owner.code is None:
        return None
    itself, function = owner.code
    context = Context({}, {}, TemplateScope({}))
    return checker.function_here(out, function, {itself: entity}, context)


def to_call(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> DynamicValue | None:
    """The function that a value is, to call it; None for a value of another type."""
    owner = closure_class(entity.type) if isinstance(entity, DynamicValue) else None
    if owner is None or owner.applied is None or not isinstance(entity, DynamicValue):
        return None
    target = _link_functions(checker, owner.program)[owner.applied]
    callee = owner.program.functions[owner.applied]
    result = callee.type.result
    parameters = tuple(Var("x", t, span) for t in callee.type.parameters[:-1])
    label, value = LoopLabel("chosen"), Var("result", result, span)
    body = Block(
        (Binding((value,), Call(target, (*parameters, entity.atom), span)),),
        Exit(label, (value,), span),
    )
    function = Function("chosen", parameters, body, label, result, span=span)
    effects = Effects([Effect(kind, _WHAT[kind], span) for kind in sorted(owner.effects)])
    type_ = FunctionType(callee.type.parameters[:-1], result, (), effects)
    return checker.bind(out, Lambda(function, span), type_, "chosen", span)


_WHAT = {"io": "prints", "ref": "reads or writes references", "assert": "may fail in an assertion"}


def _link_functions(checker: Checker, program: Module) -> Mapping[str, Global]:
    """The functions of another program in this one, by their names there."""
    found = checker.module.linked.get(program)
    if found is not None:
        return found
    own = {name: f for name, f in program.functions.items() if name in _reachable_functions(program)}
    found = checker.module.linked[program] = {}
    for name, function in own.items():
        target = Global(checker.module.unique_name(name), function.type)
        found[name] = target
        checker.module.globals[target.name] = Instance(target.name, program, (), (), function.type.result, target)
    names = {name: target.name for name, target in found.items()}
    for name, function in own.items():
        checker.module.globals[names[name]].build = _build(function, names)
    for definition in program.data:
        checker.module.monomorphization.type(DataType(definition))
    return found


def _build(function: Function | Derivative, names: Mapping[str, str]) -> Callable[[], Function | Derivative]:
    return lambda: _rename_function(function, names)


def _reachable_functions(program: Module) -> set[str]:
    """The functions that those lead to which call functions of the result."""
    origins = [d.origin for d in program.data]
    pending = [o.applied for o in origins if isinstance(o, ClosureClass) and o.applied is not None]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        function = program.functions[name]
        if isinstance(function, Derivative):
            pending.append(function.of)
            continue
        pending += function.rule_functions
        pending += (a.name for b in walk(function.body) for a in operands(b.value) if isinstance(a, Global))
    return found


def _rename_function(function: Function | Derivative, names: Mapping[str, str]) -> Function | Derivative:
    def atom(given: Atom) -> Atom:
        return Global(names[given.name], given.type, given.span) if isinstance(given, Global) else given

    def block(given: Block) -> Block:
        bindings = tuple(Binding(b.targets, map_parts(b.value, atom=atom, block=block)) for b in given.bindings)
        return Block(bindings, map_terminator(given.terminator, atom))

    name = names[function.name]
    if isinstance(function, Derivative):
        grad = attrs.evolve(function.grad, function=atom(function.grad.function))  # type: ignore[misc]
        return attrs.evolve(function, name=name, of=names[function.of], grad=grad)  # type: ignore[misc]
    rule: Rule | None = function.rule
    if isinstance(rule, CustomGradient):
        forward = None if rule.forward is None else names[rule.forward]
        rule = attrs.evolve(rule, backward=names[rule.backward], forward=forward)  # type: ignore[misc]
    return attrs.evolve(function, name=name, body=block(function.body), rule=rule)  # type: ignore[misc]


def unwrap_closure(value: Any) -> Any:
    """The value in programs of a Python function that was selected at run time; other objects unchanged."""
    closure = getattr(value, "__relay_closure__", None)
    return value if closure is None else closure
