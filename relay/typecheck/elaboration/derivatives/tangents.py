"""The tangents and cotangents of data types: functions of the typed program, one for each data type that needs it.

    dot(x: D, y: E, t)   match x { C(f..) -> match y { C(g..) -> t + sum of f * g over all float tensors, .. } }
    each(x: D)           match x { C(f..) -> C(op(f)..) }, for an operator that is one of the parts
    blank(x: D)          match x { C(f..) -> C'(0..) }, where D' is another type than D

E is D or D', the data type of its gradients; what has no gradient is left out, or unit. The sum goes along in `t`, so
that the last field of a list is a call in tail position, and lists of any length need no stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.derivative import cotangent_type, gradient_definition
from relay.ir.expr import (
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Construct,
    Counter,
    Dead,
    Exit,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    OpCall,
    Print,
    Project,
    RefRead,
    StackGet,
    StackLength,
    Terminator,
    Var,
)
from relay.ir.types import (
    BOOL,
    INT64,
    BaseType,
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    prune,
    show,
)
from relay.operator import Emitter, lookup
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import resolve, unknowns


def has_tangents(checker: Checker, type_: Type) -> bool:
    """True if a data type has a gradient."""
    made = cotangent_type(type_, checker.monomorphic_type)
    return isinstance(made, DataType)


def dot(
    checker: Checker, out: TypedBlockBuilder, left: DynamicValue, right: DynamicValue, span: Span | None
) -> AbstractValue | None:
    """The sum of the products of the float tensors at the same places of two values, the second being a tangent or
    cotangent of the first; None if they have none."""
    one, tangent = _definition(checker, left, span), checker.final_type(_solved_type(checker, right, span))
    other = tangent.definition if isinstance(tangent, DataType) else None
    if other is None or other not in (one, gradient_definition(one)):
        raise TypeMismatch(f"a tangent of {one.name} was expected, found {show(tangent)}", span)
    base = _base_of([DataType(one)])
    if base is None:
        return None
    total = TensorType(base, ())
    name = _TangentFunctions(checker, span).dot(one, other, total)
    zero = _zero(checker, out, total, span)
    return checker.bind(out, Call(name, (left.atom, right.atom, zero.atom), span), total, "dot", span)


def dot_of_lists(
    checker: Checker, out: TypedBlockBuilder, left: DynamicValue, right: DynamicValue, span: Span | None
) -> AbstractValue | None:
    """The same of two dynamic lists."""
    element, tangent = (_list_element(checker, xs, span) for xs in (left, right))
    base = _base_of([element])
    if base is None:
        return None
    total = TensorType(base, ())
    zero = _zero(checker, out, total, span)
    emitter = Emitter(span)
    found = _TangentFunctions(checker, span).add_lists(
        emitter, zero.atom, (left.atom, right.atom), (element, tangent), total
    )
    out.items += emitter.bindings
    return DynamicValue(found, total)


def of_parts(
    checker: Checker, out: TypedBlockBuilder, operator: str, entity: AbstractValue, span: Span | None
) -> AbstractValue | None:
    """An operator applied to each float tensor of a structure or of data; None for another value."""

    def visit(part: AbstractValue) -> AbstractValue:
        if isinstance(part, DynamicValue):
            part = expand(checker, out, part, span)
        if isinstance(part, Tuple):
            return Tuple(tuple(map(visit, part.items)), part.form)
        if not isinstance(part, DynamicValue):
            return part
        type_ = prune(part.type)
        if isinstance(type_, DataType):
            definition = _definition(checker, part, span)
            if gradient_definition(definition) is None:
                return part
            name = _TangentFunctions(checker, span).map_global(definition, operator)
            return checker.bind(out, Call(name, (part.atom,), span), type_, operator, span)
        base = prune(type_.base) if isinstance(type_, TensorType) else None
        if isinstance(base, BaseType) and not base.is_float:
            return part
        return operators.apply(checker, out, lookup(operator), [part], {}, span, [])

    whole = expand(checker, out, entity, span) if isinstance(entity, DynamicValue) else entity
    is_data = isinstance(whole, DynamicValue) and isinstance(prune(whole.type), DataType)
    return visit(whole) if is_data or isinstance(whole, Tuple) else None


def _zero(checker: Checker, out: TypedBlockBuilder, type_: TensorType, span: Span | None) -> DynamicValue:
    assert isinstance(type_.base, BaseType)
    return checker.bind(out, OpCall("zeros", (), {"shape": (), "dtype": type_.base}, span), type_, "zero", span)


def _list_element(checker: Checker, xs: DynamicValue, span: Span | None) -> Type:
    type_ = checker.final_type(_solved_type(checker, xs, span))
    assert isinstance(type_, StackType) and isinstance(type_.element, RefType)
    return type_.element.content


def blank(checker: Checker, out: TypedBlockBuilder, value: DynamicValue, span: Span | None) -> AbstractValue:
    """A cotangent of a value of a data type. If they are of one type the value itself serves: what is linear in the
    cotangent has the same derivative everywhere."""
    definition = _definition(checker, value, span)
    made = gradient_definition(definition)
    assert made is not None
    if made is definition:
        return value
    name = _TangentFunctions(checker, span).blank(definition)
    return checker.bind(out, Call(name, (value.atom,), span), DataType(made), "blank", span)


def _definition(checker: Checker, value: DynamicValue, span: Span | None) -> DataDefinition:
    return checker.definition(_solved_type(checker, value, span))


def _solved_type(checker: Checker, value: DynamicValue, span: Span | None) -> Type:
    type_ = resolve(value.type)
    if next(unknowns(type_), None) is not None:
        checker.force()
        type_ = resolve(value.type)
    if next(unknowns(type_), None) is not None:
        raise TypeCheckError("the type of the value that is differentiated is not known here", span, help="annotate it")
    return type_


def _base_of(types: Sequence[Type]) -> BaseType | None:
    """The widest float type in types; None if there is none."""
    found: set[BaseType] = set()
    seen: set[DataDefinition] = set()
    pending = list(types)
    while pending:
        match prune(pending.pop()):
            case TensorType(BaseType() as base) if base.is_float:
                found.add(base)
            case TupleType(items):
                pending += items
            case StackType(inner) | RefType(inner):
                pending.append(inner)
            case DataType(definition) if definition not in seen:
                seen.add(definition)
                pending += [t for c in definition.constructors for t in c.fields]
            case _:
                pass
    return max(found, key=lambda b: (b.dtype.itemsize, b.name), default=None)


class _TangentFunctions:
    """Makes the functions, under names that tell what they are of."""

    def __init__(self, checker: Checker, span: Span | None) -> None:
        self.checker = checker
        self.span = span

    def _helper_global(
        self,
        key: tuple[object, ...],
        name: str,
        types: tuple[Type, ...],
        result: Type,
        build: Callable[[str], Function],
    ) -> Global:
        found = self.checker.module.instances.get(key)
        if found is None:
            name = self.checker.module.unique_name(name)
            target = Global(name, FunctionType(types, result))
            found = self.checker.module.instances[key] = Instance(name, key, types, (), result, target)
            self.checker.module.globals[name] = found
            function = build(name)
            found.build = lambda: function
        assert isinstance(found.target, Global)
        return found.target

    # ---- products

    def dot(self, one: DataDefinition, other: DataDefinition, total: TensorType) -> Global:
        """The function for two data types."""
        types = (DataType(one), DataType(other), total)
        key = ("dot", one, other, total)
        return self._helper_global(key, f"dot_{one.name}", types, total, lambda name: self._dot(name, types))

    def _dot(self, name: str, types: tuple[DataType, DataType, TensorType]) -> Function:
        one, other, total = types
        x, y, so_far = Var("x", one, self.span), Var("y", other, self.span), Var("total", total, self.span)
        label = LoopLabel(name)
        arms = []
        for constructor in one.definition.constructors:
            fields = tuple(Var("field", t, self.span) for t in constructor.fields)
            inner = []
            for candidate in other.definition.constructors:
                given = tuple(Var("tangent", t, self.span) for t in candidate.fields)
                emitter = Emitter(self.span)
                if candidate.name == constructor.name:
                    result: Atom = so_far
                    for field, tangent in sorted(zip(fields, given, strict=True), key=lambda p: _is_last(p[0], one)):
                        result = self.add(emitter, result, field, tangent, total)
                else:
                    text = f"a tangent of {constructor.name} was expected, found {candidate.name}"
                    emitter.bindings.append(Binding((), Print((text,), (), (), self.span, fails=True)))
                    result = so_far
                inner.append(self._arm(candidate.name, given, emitter, label, result))
            match = Match(y, tuple(inner), self.span)
            arms.append(MatchArm(constructor.name, fields, _leaving_block(match)))
        return Function(
            name, (x, y, so_far), _leaving_block(Match(x, tuple(arms), self.span)), label, total, span=self.span
        )

    def _arm(self, name: str, fields: tuple[Var, ...], emitter: Emitter, label: LoopLabel, result: Atom) -> MatchArm:
        end: Terminator = Exit(label, (result,), self.span)
        return MatchArm(name, fields, Block(tuple(emitter.bindings), end))

    def add(self, emitter: Emitter, so_far: Atom, one: Atom, other: Atom, total: TensorType) -> Atom:
        """so_far + one * other, over all float tensors."""
        type_, tangent = _type(one), _type(other)
        match type_, tangent:
            case TensorType(BaseType() as base), TensorType() if base.is_float:
                product = emitter.value(one) * emitter.value(other)
                part = product.op("sum", axis=None, keepdims=False)
                part = part if base == total.base else part.op("cast", dtype=total.base)
                return (emitter.value(so_far) + part).atom
            case TupleType(items), TupleType(others) if others:
                for position, (item, tangent_item) in enumerate(zip(items, others, strict=True)):
                    part_one = emitter.bind(Project(one, position, self.span), item, "item").atom
                    part_other = emitter.bind(Project(other, position, self.span), tangent_item, "item").atom
                    so_far = self.add(emitter, so_far, part_one, part_other, total)
                return so_far
            case DataType(definition), DataType(of_tangent) if gradient_definition(definition) is not None:
                name = self.dot(definition, of_tangent, total)
                return emitter.bind(Call(name, (one, other, so_far), self.span), total, "total").atom
            case StackType(RefType(element)), StackType(RefType(tangent_element)):
                return self.add_lists(emitter, so_far, (one, other), (element, tangent_element), total)
            case _:
                return so_far

    def add_lists(
        self, emitter: Emitter, so_far: Atom, lists: tuple[Atom, Atom], elements: tuple[Type, Type], total: TensorType
    ) -> Atom:
        """The same of two lists of such elements, of dynamic length, but is equal."""
        length, truth = TensorType(INT64, ()), TensorType(BOOL, ())
        one, other = (emitter.bind(StackLength(xs, self.span), length, "length").atom for xs in lists)
        same = emitter.bind(OpCall("equal", (one, other), {}, self.span), truth, "same").atom
        emitter.bindings.append(Binding((), Assert(same, "a list of as many cotangents was expected", self.span)))
        index, inner, label = Var("i", length, self.span), Var("total", total, self.span), LoopLabel("dot")
        round_ = Emitter(self.span)
        parts = []
        for xs, type_ in zip(lists, elements, strict=True):
            cell = round_.bind(StackGet(xs, index, self.span), RefType(type_), "cell").atom
            parts.append(round_.bind(RefRead(cell, self.span), type_, "item").atom)
        after = self.add(round_, inner, parts[0], parts[1], total)
        body = Block(tuple(round_.bindings), Next(label, (after,), self.span))
        loop = Loop(label, (inner,), (so_far,), body, Counter(index, one), self.span)
        return emitter.bind(loop, total, "dot").atom

    # ---- the same operator on all parts

    def map_global(self, definition: DataDefinition, operator: str) -> Global:
        """The function that applies an operator to each float tensor in a value."""
        whole = DataType(definition)
        key = ("each", operator, definition)
        return self._helper_global(
            key,
            f"{operator}_{definition.name}",
            (whole,),
            whole,
            lambda name: self._map_function(name, definition, operator),
        )

    def _map_function(self, name: str, definition: DataDefinition, operator: str) -> Function:
        whole, label, arms = DataType(definition), LoopLabel(name), []
        x = Var("x", whole, self.span)
        for constructor in definition.constructors:
            fields = tuple(Var("field", t, self.span) for t in constructor.fields)
            emitter = Emitter(self.span)
            parts = tuple(self._part(emitter, field, operator) for field in fields)
            made = emitter.bind(Construct(definition, constructor.name, parts, self.span), whole, "whole").atom
            arms.append(self._arm(constructor.name, fields, emitter, label, made))
        return Function(name, (x,), _leaving_block(Match(x, tuple(arms), self.span)), label, whole, span=self.span)

    def _part(self, emitter: Emitter, value: Atom, operator: str) -> Atom:
        match _type(value):
            case TensorType(BaseType() as base) if base.is_float:
                return emitter.value(value).op(operator).atom
            case TupleType(items) as whole if items:
                parts = [emitter.bind(Project(value, i, self.span), t, "item").atom for i, t in enumerate(items)]
                made = MakeTuple(tuple(self._part(emitter, p, operator) for p in parts), self.span)
                return emitter.bind(made, whole, "whole").atom
            case DataType(definition) as type_ if gradient_definition(definition) is not None:
                return emitter.bind(
                    Call(self.map_global(definition, operator), (value,), self.span), type_, "part"
                ).atom
            case _:
                return value

    # ---- zeros

    def blank(self, definition: DataDefinition) -> Global:
        """The function that gives a cotangent of a value."""
        made = gradient_definition(definition)
        assert made is not None
        types, result = (DataType(definition),), DataType(made)
        key = ("blank", definition)
        return self._helper_global(
            key, f"blank_{definition.name}", types, result, lambda name: self._blank(name, definition, made)
        )

    def _blank(self, name: str, definition: DataDefinition, made: DataDefinition) -> Function:
        x, label, arms = Var("x", DataType(definition), self.span), LoopLabel(name), []
        for constructor in definition.constructors:
            fields = tuple(Var("field", t, self.span) for t in constructor.fields)
            emitter = Emitter(self.span)
            parts = tuple(self._zero(emitter, field) for field in fields)
            whole = Construct(made, constructor.name, parts, self.span)
            result = emitter.bind(whole, DataType(made), "blank").atom
            arms.append(self._arm(constructor.name, fields, emitter, label, result))
        return Function(
            name, (x,), _leaving_block(Match(x, tuple(arms), self.span)), label, DataType(made), span=self.span
        )

    def _zero(self, emitter: Emitter, value: Atom) -> Atom:
        match _type(value):
            case TensorType(BaseType() as base) if base.is_float:
                return emitter.value(value).op("zeros_like").atom
            case TupleType(items) as whole if items:
                parts = [emitter.bind(Project(value, i, self.span), t, "item").atom for i, t in enumerate(items)]
                made = MakeTuple(tuple(self._zero(emitter, p) for p in parts), self.span)
                return emitter.bind(made, cotangent_type(whole), "blank").atom
            case DataType(definition) if (gradient := gradient_definition(definition)) is not None:
                if gradient is definition:
                    return value
                return emitter.bind(Call(self.blank(definition), (value,), self.span), DataType(gradient), "blank").atom
            case _:
                return emitter.bind(MakeTuple((), self.span), TupleType(()), "none").atom


def _type(atom: Atom) -> Type:
    assert isinstance(atom, Var) and atom.type is not None
    return prune(atom.type)  # type: ignore[return-value]


def _is_last(field: Var, whole: DataType) -> bool:
    """True if a field comes last in the sum: the rest of a list."""
    return field.type == whole


def _leaving_block(match: Match) -> Block:
    """A block that ends with a match whose arms leave."""
    return Block((Binding((), match),), Dead())
