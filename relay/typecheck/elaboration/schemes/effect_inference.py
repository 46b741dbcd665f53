"""Effect inference for code without types: skipped loops and match arms, functions that are not called.

What it calls is found by the names in it. Of functions that are named it is assumed that they are called. Where values
of open types come from is followed from binding to binding: a call of one, or of what has been taken out of one, has
the effects of the functions in its type (`ir/effects.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from relay.errors import FrontendError
from relay.ir.definition import complete_definition, data_class
from relay.ir.effects import Effects
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Expr,
    Function,
    Global,
    Lambda,
    OpCall,
    RefNew,
    RefRead,
    RefWrite,
    Static,
    Terminator,
    Var,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, Attribute, ForEach, Index, SetAttribute
from relay.ir.traverse import blocks, bound_variables, free_variables, operands, terminator_operands
from relay.ir.types import (
    DataType,
    Form,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    StackType,
    TupleType,
    Type,
    Unknown,
    mentioned_definitions,
    prune,
)
from relay.operator import Operator
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    Poison,
    PythonObject,
    Tuple,
    Zip,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.effects.effect_notes import READS, WRITES
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.values import data, records
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import is_attribute
from relay.typecheck.unification import resolve


@attrs.frozen(eq=False)
class _OpaqueValue:
    """The abstract value of a variable in unchecked code: something that is taken from these values, or from objects
    of these classes, or a function of the program (`known`); a method of that name, or this very function, if it is
    one."""

    sources: frozenset[DynamicValue] = frozenset()
    classes: frozenset[type] = frozenset()
    known: bool = False
    method: str | None = None
    function: Function | None = None

    def and_(self, other: _OpaqueValue) -> _OpaqueValue:
        """The union of both: a value may be either."""
        return _OpaqueValue(self.sources | other.sources, self.classes | other.classes, self.known or other.known)

    def is_within(self, other: _OpaqueValue) -> bool:
        """True if the other one includes this one."""
        return self.sources <= other.sources and self.classes <= other.classes and self.known <= other.known


_NOTHING = _OpaqueValue()

Meaning = Callable[[Atom], "AbstractValue | _OpaqueValue | None"]
"""The meaning of an atom; None if it is not known, and cannot be called."""


def note(checker: Checker, context: Context, binding: Binding) -> None:
    """Note the effects of a binding that is not checked."""
    reader = _EffectWalker(checker)
    reader.bindings((binding,), _meanings(context))
    reader.finish()


def note_function(checker: Checker, entity: AbstractValue) -> None:
    """Note the effects of a function whose body is not checked, since nobody calls it."""
    reader = _EffectWalker(checker)
    reader.note_callee(entity)
    reader.finish()


def settle(checker: Checker) -> None:
    """Add the effects of the functions in types to the users of values of these types, now that the types are known."""
    for effects, type_, method in checker.uses_of_values:
        with checker.effects_of(effects):
            _settle(checker, type_, method)


def _settle(checker: Checker, type_: Type, method: str | None) -> None:
    known = prune(type_)
    owner = data_class(known.definition) if isinstance(known, DataType) else None
    if owner is not None and method is not None and method in owner.methods:
        note_function(checker, GlobalFunction(owner.methods[method]()))
        return
    for effects in effects_in(checker, resolve(known)):  # type: ignore[arg-type]
        checker.effects.include(effects)


def effects_in(checker: Checker, type_: Type) -> Iterator[Effects]:
    """The effects of the functions in a type, and of the functions that these return."""
    match type_:
        case Unknown():
            if type_.kind is Kind.Type:
                yield checker.effects_of_any.setdefault(type_, Effects())
        case FunctionType(_, result, _, effects):
            if isinstance(effects, Effects):
                yield effects
            yield from effects_in(checker, result)
        case QuantifiedType(_, body):
            yield from effects_in(checker, body)
        case TupleType(items):
            for item in items:
                yield from effects_in(checker, item)
        case RefType(inner) | StackType(inner):
            yield from effects_in(checker, inner)
        case DataType(definition, arguments):
            mentioned = list(dict.fromkeys(mentioned_definitions([type_])))
            for one in mentioned:
                for constructor in complete_definition(one).constructors:
                    data.field_types(checker, data.fresh_type(checker, one), constructor)
            yield from checker.stored_effects([definition])
            for argument in arguments:
                if isinstance(argument, Type):
                    yield from effects_in(checker, argument)
        case _:
            pass


class _EffectWalker:
    """Walks through unchecked code, callers before callees."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._unseen: dict[Var, _OpaqueValue] = {}
        self._written = _NOTHING  # what may be in references
        self._passed: dict[Function, Sequence[_OpaqueValue]] = {}  # to parameters of functions, by their identity
        self._pending: list[tuple[Function, Meaning]] = []

    def finish(self) -> None:
        """Look at the functions that are called."""
        while self._pending:
            function, meaning = self._pending.pop()
            self._unseen.update(zip(function.parameters, self._passed[function], strict=True))
            self.bindings(function.body.bindings, meaning, function.body.terminator)

    def bindings(self, bindings: Sequence[Binding], outer: Meaning, end: Terminator | None = None) -> None:
        """Note the effects of bindings, of blocks inside of them, and of functions that leave the block."""

        def meaning(atom: Atom) -> AbstractValue | _OpaqueValue | None:
            return self._unseen[atom] if isinstance(atom, Var) and atom in self._unseen else outer(atom)

        pending: list[tuple[Iterator[Binding], Terminator | None]] = [(iter(bindings), end)]
        while pending:
            rest, terminator = pending[-1]
            binding = next(rest, None)
            if binding is not None:
                self._binding(binding, meaning)
                inside = [] if isinstance(binding.value, Lambda) else list(blocks(binding.value))
                if inside:
                    made = self._join_atoms(_used_atoms(binding.value), meaning)
                    self._unseen.update(dict.fromkeys(bound_variables(binding.value), made))
                if isinstance(binding.value, ForEach):
                    self._unseen[binding.value.element] = self._join_atoms((binding.value.iterable,), meaning)
                pending += [(iter(b.bindings), b.terminator) for b in reversed(inside)]
                continue
            pending.pop()
            for atom in terminator_operands(terminator) if terminator is not None else ():
                self._note_value(meaning(atom), meaning)

    def _binding(self, binding: Binding, meaning: Meaning) -> None:
        checker, expression = self._checker, binding.value
        made = self._join_atoms(_used_atoms(expression), meaning)
        match expression:
            case Assert(span=span) | Apply(Static(Intrinsic("assert")), span=span):
                checker.effect("assert", "may fail in an assertion", span)
            case RefNew():
                checker.effects.own.update(binding.targets)
            case RefRead(atom, span):
                checker.effect("ref", READS, span, _reference(atom, meaning))
                made = made.and_(self._written)
            case Attribute(atom, "value", span):
                found = meaning(atom)
                if _is_reference(found):
                    checker.effect("ref", READS, span, _reference(atom, meaning))
                elif isinstance(found, _OpaqueValue) or _is_open(found):
                    self._uses(made)
                made = made.and_(self._written)
            case Attribute(_, name):
                made = attrs.evolve(made, method=name)
            case RefWrite(atom, _, span) | SetAttribute(atom, "value", _, span):
                checker.effect("ref", WRITES, span, _reference(atom, meaning))
                self._written = self._written.and_(made)
            case Apply(Static(Intrinsic("print")), span=span):
                checker.effect("io", "prints", span)
            case Apply(Static(Intrinsic("call")), (function, *arguments), keywords):  # with stars
                self._call(meaning(function), (), [*arguments, *(atom for _, atom in keywords)], meaning)
            case Apply(function, arguments, keywords):
                callee = meaning(function)
                self._call(callee, arguments, [atom for _, atom in keywords], meaning)
                if isinstance(callee, PythonObject) and isinstance(callee.value, type):
                    made = made.and_(_OpaqueValue(classes=frozenset((callee.value,))))
            case OpCall() | Index():
                self._special_methods(self._join_atoms(operands(expression), meaning))
            case Lambda(function):
                made = attrs.evolve(made, known=True, function=function)
            case Var():
                found = meaning(expression)
                made = found if isinstance(found, _OpaqueValue) else made
            case _:
                pass
        self._unseen.update(dict.fromkeys(binding.targets, made))
        for atom in (*operands(expression), *binding.targets):
            self._note_value(meaning(atom), meaning)

    def _call(
        self,
        callee: AbstractValue | _OpaqueValue | None,
        arguments: Sequence[Atom],
        others: Sequence[Atom],
        meaning: Meaning,
    ) -> None:
        """Note the effects of a call. `others` are arguments that are not matched with parameters."""
        passed = tuple(self._join_atoms((a, *others), meaning) for a in arguments)
        rest = self._join_atoms(others, meaning)
        while isinstance(callee, DerivativeFunction):
            callee, rest = callee.of, rest.and_(_union(passed))
        match callee:
            case GlobalFunction() | LocalFunction():
                self.note_callee(callee, passed, rest)
            case PythonObject(Operator() | type()):
                pass
            case PythonObject(value) if is_function(value):
                pass
            case PythonObject(functools.partial() as partial):
                self._call(object_entity(partial.func, None), (), [*arguments, *others], meaning)
                for given in (*partial.args, *partial.keywords.values()):
                    self.note_callee(object_entity(given, None))
            case PythonObject(value) if not isinstance(value, Intrinsic) and _differentiates(value):
                self._uses(_union(passed).and_(rest))
            case PythonObject():  # of Python: `sorted(xs, key=f)`
                self._uses(rest)
            case _OpaqueValue(function=Function() as function):
                self._function(function, meaning, passed, rest)
            case _OpaqueValue(method=str(name)):
                self._method(callee, name, passed, rest)
                self._uses(rest)
            case Method(value, name):
                self._method(_opaque_value(value), name, passed, rest)
            case _OpaqueValue(known=known):
                self._uses(callee.and_(_union(passed)).and_(rest) if known else callee)
                self._method(callee, "__call__", passed, rest)
            case Tuple() | DynamicValue():
                self._uses(_opaque_value(callee))
                self._method(_opaque_value(callee), "__call__", passed, rest)
            case _:
                pass

    def _method(self, value: _OpaqueValue, name: str, passed: Sequence[_OpaqueValue], rest: _OpaqueValue) -> None:
        """Note the effects of a call of `value.name`: a method of its class, or a function in a field. Of an unknown
        class, one whose name tensors and lists know is theirs."""
        of_structures = is_attribute(name) or _of_structures(name)
        classes = set(value.classes)
        for source in value.sources:
            cls = _class_of(source)
            if cls is None and not of_structures:
                self._uses(_opaque_value(source), name)
            elif cls is not None:
                classes.add(cls)
        for cls in classes:
            own = _own_method(cls, name)
            if own is not None:
                self.note_callee(own, (value, *passed), rest)
            elif not of_structures:
                self._uses(value, name)

    def _special_methods(self, value: _OpaqueValue) -> None:
        """Note the effects of the methods that Python's operators call, for a value of a known class."""
        for cls in (*value.classes, *filter(None, map(_class_of, value.sources))):
            owner = data_class(cls)
            for name in owner.methods if owner is not None else ():
                if name.startswith("__") and owner is not None:
                    self.note_callee(GlobalFunction(owner.methods[name]()), (), value)

    def _uses(self, values: _OpaqueValue, method: str | None = None) -> None:
        """The functions in these values may be called, or their references read."""
        for source in values.sources:
            self._checker.uses_value(source.type, method)

    def _note_value(self, entity: AbstractValue | _OpaqueValue | None, meaning: Meaning) -> None:
        if isinstance(entity, _OpaqueValue):
            if entity.function is not None:
                self._function(entity.function, meaning, (), _NOTHING)
        else:
            self.note_callee(entity)

    def note_callee(
        self, entity: AbstractValue | None, passed: Sequence[_OpaqueValue] = (), rest: _OpaqueValue = _NOTHING
    ) -> None:
        """Note the effects of a function of the program. It is called with such values, `rest` for any parameter; what
        its parameters have as defaults may be called, too."""
        match entity:
            case GlobalFunction(definition):
                scope = definition.scope
                self._function(definition.function, lambda atom: _global(scope, atom), passed, rest)
            case LocalFunction(function, context=context):
                self._function(function, _meanings(context), passed, rest)
            case DerivativeFunction(of) | Method(of):
                self.note_callee(of, passed, rest)
            case Tuple(items) | Zip(items):
                for item in items:
                    self.note_callee(item, passed, rest)
            case _:
                pass

    def _function(
        self, function: Function, meaning: Meaning, passed: Sequence[_OpaqueValue], rest: _OpaqueValue
    ) -> None:
        before = self._passed.get(function)
        given = [*passed, *(rest for _ in function.parameters)][: len(function.parameters)]
        given = [one.and_(rest) for one in given]
        if before is not None and all(new.is_within(old) for new, old in zip(given, before, strict=True)):
            return
        for position, parameter in enumerate(function.signature):
            if parameter.default is not None:
                self._note_value(meaning(parameter.default), meaning)
                given[position] = given[position].and_(self._join_atoms((parameter.default,), meaning))
        if before is not None:
            given = [new.and_(old) for new, old in zip(given, before, strict=True)]
        self._passed[function] = given
        self._pending.append((function, meaning))

    def _join_atoms(self, atoms: Iterable[Atom], meaning: Meaning) -> _OpaqueValue:
        """The join of the values of these atoms, or of the values taken out of them."""
        found = _NOTHING
        for atom in atoms:
            entity = meaning(atom)
            found = found.and_(entity if isinstance(entity, _OpaqueValue) else _opaque_value(entity))
        return found


def _opaque_value(entity: AbstractValue | None) -> _OpaqueValue:
    match entity:
        case DynamicValue():
            return _OpaqueValue(frozenset((entity,)))
        case GlobalFunction() | LocalFunction():
            return _OpaqueValue(known=True)
        case Tuple(items, form):
            own = _NOTHING if form is None else _OpaqueValue(classes=frozenset((form.cls,)))
            return own.and_(_union(map(_opaque_value, items)))
        case Zip(items):
            return _union(map(_opaque_value, items))
        case DerivativeFunction(of) | Method(of):
            return _opaque_value(of)
        case _:
            return _NOTHING


def _union(values: Iterable[_OpaqueValue]) -> _OpaqueValue:
    return functools.reduce(_OpaqueValue.and_, values, _NOTHING)


def _class_of(value: DynamicValue) -> type | None:
    """The Python class of a value, if it is an object of one."""
    match prune(value.type):
        case DataType(definition):
            owner = data_class(definition)
            return None if owner is None else owner.cls
        case TupleType(_, Form(cls)):
            return cls
        case _:
            return None


def _own_method(cls: type, name: str) -> GlobalFunction | None:
    """A method of a class that is decorated with @relay."""
    owner = data_class(cls)
    if owner is not None:
        return GlobalFunction(owner.methods[name]()) if name in owner.methods else None
    return records.own_method(Tuple((), Form(cls, ())), name)


def _differentiates(value: object) -> bool:
    """True if a Python object is `grad`, `vjp` or the like, which call their arguments."""
    return hasattr(value, "__relay_template__") or hasattr(value, "__relay_builtin__")


def _used_atoms(expression: Expr) -> list[Atom]:
    """The operands of an expression, with those that blocks inside of it use from outside."""
    found: dict[Atom, None] = dict.fromkeys(operands(expression))
    for block in blocks(expression):
        found.update(dict.fromkeys(free_variables(block)))
    return list(found)


def _of_structures(name: str) -> bool:
    """True if Python's structures have a method of this name."""
    return any(hasattr(cls, name) for cls in (list, dict))


def _meanings(context: Context) -> Meaning:
    def meaning(atom: Atom) -> AbstractValue | None:
        if not isinstance(atom, Var):
            return _global(context.scope, atom)
        around: Context | None = context
        while around is not None:
            if atom in around.environment:
                found = around.environment[atom]
                return None if isinstance(found, Poison) else found
            around = around.outer
        return None

    return meaning


def _global(scope: object, atom: Atom) -> AbstractValue | None:
    value = scope.resolve(atom.name) if isinstance(atom, Global) else None  # type: ignore[attr-defined]
    if isinstance(atom, Static):
        value = atom.value
    try:
        return None if value is None else object_entity(value, None)
    except FrontendError:
        return PythonObject(value)  # which is reported where its place is looked at


def _reference(atom: Atom, meaning: Meaning) -> Atom:
    """The variable of a reference in the typed program, if it has one there."""
    found = meaning(atom)
    return found.atom if isinstance(found, DynamicValue) else atom


def _is_reference(entity: object) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), RefType)


def _is_open(entity: object) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown)
