"""Rebuilding of expressions, blocks and functions: with other atoms, blocks and variables, and as copies.

One function, `map_parts`, knows where each node has atoms, bound variables, labels and blocks. Everything recurses on
nesting and loops on length, and returns new nodes where something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TypeVar, assert_never

import attrs

from relay.ir.dims import DataDependentDim, Dim, DimExpr, TypeId, made_dim
from relay.ir.dims import substitute as substitute_dim
from relay.ir.expr import (
    Arm,
    Ascribe,
    Assert,
    Atom,
    AttributeValue,
    AxisSize,
    BindDim,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Exit,
    Expr,
    Extent,
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
    Next,
    OpCall,
    Parameter,
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
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.surface import (
    Annotated,
    Apply,
    Attribute,
    CapturePattern,
    ClassPattern,
    ForEach,
    Index,
    IndexUpdate,
    OrPattern,
    Pattern,
    PatternCase,
    PatternMatch,
    SetAttribute,
    Slice,
    TuplePattern,
    Unpack,
    ValuePattern,
    WildcardPattern,
)
from relay.ir.traverse import NESTING, bound_variables
from relay.ir.types import Type, map_dims

_T = TypeVar("_T")


def _identity(part: _T) -> _T:
    return part


def _map_pattern(pattern: Pattern, atom: Callable[[Atom], Atom], var: Callable[[Var], Var]) -> Pattern:
    def map_inner(item: Pattern) -> Pattern:
        return _map_pattern(item, atom, var)

    match pattern:
        case WildcardPattern():
            return pattern
        case CapturePattern(variable, inner, span):
            return CapturePattern(var(variable), map_inner(inner), span)
        case ValuePattern(value, span):
            return ValuePattern(atom(value), span)
        case TuplePattern(items, star, span):
            return TuplePattern(tuple(map(map_inner, items)), star, span)
        case ClassPattern(function, items, keywords, span):
            return ClassPattern(
                atom(function), tuple(map(map_inner, items)), tuple((k, map_inner(p)) for k, p in keywords), span
            )
        case OrPattern(alternatives, span):
            return OrPattern(tuple(map(map_inner, alternatives)), span)
        case _:
            assert_never(pattern)


def map_parts(
    expression: Expr,
    *,
    atom: Callable[[Atom], Atom] = _identity,
    block: Callable[[Block], Block] = _identity,
    var: Callable[[Var], Var] = _identity,
    label: Callable[[LoopLabel], LoopLabel] = _identity,
    dims: Mapping[DataDependentDim, DataDependentDim] | None = None,
) -> Expr:
    """The same expression with other parts.

    `atom` maps what it reads, `var` the variables and `label` the labels that it binds for its blocks (called before
    `block` is called for the blocks that they are visible in), `block` the blocks directly inside it; `dims` are others
    for data-dependent sizes, also for those that the expression binds.

    Calls of operators, branches and loops in which nothing changes are the same objects, unless they are copied: where
    `var` is given.
    """
    keeps = var is _identity and not dims
    if keeps and expression.__class__ is OpCall:  # most expressions: quicker than going through the cases
        arguments = expression.arguments
        new_arguments = tuple(map(atom, arguments))
        if all(map(is_, new_arguments, arguments)):
            return expression
        return OpCall(expression.operator, new_arguments, expression.attributes, expression.span)
    match expression:
        case Var() | Constant() | Global() | Static():
            return atom(expression)
        case OpCall(operator, arguments, attributes, span):
            if dims:
                attributes = {name: renamed_attribute(value, dims) for name, value in attributes.items()}
            new_arguments = tuple(map(atom, arguments))
            if keeps and all(map(is_, new_arguments, arguments)):
                return expression
            return OpCall(operator, new_arguments, attributes, span)
        case Call(function, arguments, span):
            return Call(atom(function), tuple(map(atom, arguments)), span)
        case MakeTuple(items, span):
            return MakeTuple(tuple(map(atom, items)), span)
        case Project(value, index, span):
            return Project(atom(value), index, span)
        case If(arms, orelse, span):
            new_arms = tuple(Arm(block(a.condition), block(a.body)) for a in arms)
            new_orelse = block(orelse)
            same = all(a.condition is b.condition and a.body is b.body for a, b in zip(arms, new_arms, strict=True))
            return expression if keeps and same and new_orelse is orelse else If(new_arms, new_orelse, span)
        case Match(value, match_arms, span):
            new_value = atom(value)
            return Match(
                new_value,
                tuple(MatchArm(a.constructor, tuple(map(var, a.fields)), block(a.body)) for a in match_arms),
                span,
            )
        case Loop(loop_label, parameters, initial, body, counter, span):
            new_initial = tuple(map(atom, initial))
            new_count = None if counter is None else atom(counter.count)
            new_label, new_parameters = label(loop_label), tuple(map(var, parameters))
            new_counter = None if counter is None or new_count is None else Counter(var(counter.index), new_count)
            new_body = block(body)
            same = new_body is body and new_label is loop_label and all(map(is_, new_initial, initial))
            if keeps and same and (counter is None or new_count is counter.count):
                return expression
            return Loop(new_label, new_parameters, new_initial, new_body, new_counter, span)
        case Lambda(function, span):
            return Lambda(_map_function(function, atom, block, var, label, dims), span)
        case Grad(function):
            return attrs.evolve(expression, function=atom(function))  # type: ignore[misc]
        case RefNew(value, span):
            return RefNew(atom(value), span)
        case RefRead(reference, span):
            return RefRead(atom(reference), span)
        case RefWrite(reference, value, span):
            return RefWrite(atom(reference), atom(value), span)
        case Shadow(reference, sweep, initial, slot, span):
            return Shadow(atom(reference), atom(sweep), atom(initial), slot, span)
        case Assert(condition, message, span):
            return Assert(atom(condition), message, span)
        case Print(pieces, values, formats, span):
            return Print(pieces, tuple(map(atom, values)), formats, span, expression.fails)
        case Construct(definition, constructor, arguments, span):
            return Construct(definition, constructor, tuple(map(atom, arguments)), span)
        case StackNew():
            return StackNew(renamed_type(expression.element, dims), expression.span)
        case StackPush(stack, value, span):
            return StackPush(atom(stack), atom(value), span)
        case StackGet(stack, index_atom, span):
            return StackGet(atom(stack), atom(index_atom), span)
        case StackPrefix(stack, index_atom, span):
            return StackPrefix(atom(stack), atom(index_atom), span)
        case StackSet(stack, index_atom, value, span):
            return StackSet(atom(stack), atom(index_atom), atom(value), span)
        case StackLength(stack, span):
            return StackLength(atom(stack), span)
        case Extent(dim, base, span):
            return Extent(_renamed_dim(dim, dims), base, span)
        case BindDim(made, size, span):
            return BindDim(dims.get(made, made) if dims else made, atom(size), span)
        case AxisSize(value, axis, span):
            return AxisSize(atom(value), axis, span)
        case Ascribe(value, span):
            return Ascribe(atom(value), span)
        case Apply(function, arguments, keywords, span):
            return Apply(
                atom(function),
                tuple(map(atom, arguments)),
                tuple((name, atom(value)) for name, value in keywords),
                span,
            )
        case Attribute(value, name, span):
            return Attribute(atom(value), name, span)
        case SetAttribute(value, name, new, span):
            return SetAttribute(atom(value), name, atom(new), span)
        case Index(value, subscripts, span, updated):
            return Index(atom(value), _map_items(subscripts, atom), span, updated)
        case IndexUpdate(value, subscripts, new, span, inside):
            return IndexUpdate(atom(value), _map_items(subscripts, atom), atom(new), span, inside)
        case Annotated(value, annotation, span):
            return Annotated(atom(value), annotation, span)
        case Unpack(value, count, span):
            return Unpack(atom(value), count, span)
        case ForEach(loop_label, element, iterable, parameters, initial, body, span, resized):
            new_iterable, new_initial = atom(iterable), tuple(map(atom, initial))
            new_label, new_element, new_parameters = label(loop_label), var(element), tuple(map(var, parameters))
            new_body = block(body)
            return ForEach(new_label, new_element, new_iterable, new_parameters, new_initial, new_body, span, resized)
        case PatternMatch(value, cases, span):
            new_value, renamed = atom(value), {v: var(v) for v in bound_variables(expression)}
            return PatternMatch(
                new_value,
                tuple(
                    PatternCase(
                        _map_pattern(c.pattern, atom, lambda v: renamed[v]),
                        None if c.guard is None else block(c.guard),
                        block(c.body),
                        c.span,
                    )
                    for c in cases
                ),
                span,
            )
        case _:
            assert_never(expression)


def renamed_type(type_: Type, dims: Mapping[DataDependentDim, DataDependentDim] | None) -> Type:
    """A type with others for data-dependent sizes."""
    return map_dims(type_, lambda dim: _renamed_dim(dim, dims)) if dims else type_


def _renamed_dim(dim: Dim, dims: Mapping[DataDependentDim, DataDependentDim] | None) -> Dim:
    if not dims or isinstance(dim, int):
        return dim
    return substitute_dim(dim, lambda v: dims.get(v, v) if isinstance(v, DataDependentDim) else v)


def renamed_attribute(value: AttributeValue, dims: Mapping[DataDependentDim, DataDependentDim]) -> AttributeValue:
    """An attribute with others for data-dependent sizes."""
    match value:
        case TypeId() | DimExpr():
            return _renamed_dim(value, dims)  # type: ignore[return-value]  # finished attributes have no open dims
        case tuple():
            return tuple(renamed_attribute(v, dims) for v in value)
        case _:
            return value


def _map_items(items: tuple[Atom | Slice, ...], atom: Callable[[Atom], Atom]) -> tuple[Atom | Slice, ...]:
    def end(value: Atom | None) -> Atom | None:
        return None if value is None else atom(value)

    return tuple(
        Slice(end(item.start), end(item.stop), end(item.step)) if isinstance(item, Slice) else atom(item)
        for item in items
    )


def _map_function(
    function: Function,
    atom: Callable[[Atom], Atom],
    block: Callable[[Block], Block],
    var: Callable[[Var], Var],
    label: Callable[[LoopLabel], LoopLabel],
    dims: Mapping[DataDependentDim, DataDependentDim] | None = None,
) -> Function:
    signature = tuple(Parameter(p.kind, None if p.default is None else atom(p.default)) for p in function.signature)
    parameters, new_label = tuple(map(var, function.parameters)), label(function.label)
    return Function(
        function.name,
        parameters,
        block(function.body),
        new_label,
        None if function.result is None else renamed_type(function.result, dims),
        signature,
        function.documentation,
        function.span,
        function.rule,
    )


def map_atoms(expression: Expr, function: Callable[[Atom], Atom]) -> Expr:
    """The expression reading other atoms. Its blocks stay as they are."""
    return map_parts(expression, atom=function)


def map_blocks(expression: Expr, function: Callable[[Block], Block]) -> Expr:
    """The expression with other blocks directly inside it; the same one if it has no blocks."""
    return map_parts(expression, block=function) if expression.__class__ in NESTING else expression


def rebind(binding: Binding, value: Expr) -> Binding:
    """The binding with another value; the same one if it is the value that it has."""
    return binding if value is binding.value else Binding(binding.targets, value)


def rebuild_block(block: Block, bindings: Sequence[Binding], terminator: Terminator) -> Block:
    """The block with other contents; the same one if they are the same objects."""
    same = terminator is block.terminator and len(bindings) == len(block.bindings)
    if same and all(map(is_, bindings, block.bindings)):
        return block
    return Block(tuple(bindings), terminator)


def map_terminator(
    terminator: Terminator,
    atom: Callable[[Atom], Atom] = _identity,
    label: Callable[[LoopLabel], LoopLabel] = _identity,
) -> Terminator:
    """The terminator passing on other atoms, with `label` applied to where it leads."""
    if isinstance(terminator, Dead):
        return terminator
    values = tuple(map(atom, terminator.values))
    if label is _identity and all(map(is_, values, terminator.values)):
        return terminator
    match terminator:
        case Yield(_, span):
            return Yield(values, span)
        case Next(target, _, span):
            return Next(label(target), values, span)
        case Exit(target, _, span):
            return Exit(label(target), values, span)
        case _:
            assert_never(terminator)


def substitute(block: Block, mapping: Mapping[Var, Atom]) -> Block:
    """The block with atoms in place of free variables. Bound variables and labels keep their identity, so the old block
    must not stay in the module."""

    def atom(a: Atom) -> Atom:
        return mapping.get(a, a) if isinstance(a, Var) else a

    def visit(inner: Block) -> Block:
        bindings = tuple(Binding(b.targets, map_parts(b.value, atom=atom, block=visit)) for b in inner.bindings)
        return Block(bindings, map_terminator(inner.terminator, atom))

    return visit(block)


class _Copy:
    """Fresh variables, labels and sizes for all that a copied part binds."""

    def __init__(
        self, mapping: Mapping[Var, Atom], labels: Mapping[LoopLabel, LoopLabel], keep_sizes: bool = False
    ) -> None:
        self.keep_sizes = keep_sizes
        self.variables: dict[Var, Atom] = dict(mapping)
        self.labels: dict[LoopLabel, LoopLabel] = dict(labels)
        self.dims: dict[DataDependentDim, DataDependentDim] = {}

    def fresh(self, var: Var) -> Var:
        copy = Var(var.name, None if var.type is None else renamed_type(var.type, self.dims), var.span)
        self.variables[var] = copy
        return copy

    def fresh_label(self, label: LoopLabel) -> LoopLabel:
        return self.labels.setdefault(label, LoopLabel(label.name))

    def atom(self, atom: Atom) -> Atom:
        return self.variables.get(atom, atom) if isinstance(atom, Var) else atom

    def block(self, block: Block) -> Block:
        for binding in block.bindings:
            if isinstance(binding.value, BindDim) and not self.keep_sizes:
                dim = binding.value.dim
                self.dims[dim] = made_dim(dim.name, dim.is_wide)
        # All targets first: lambdas next to each other see each other.
        targets = [tuple(map(self.fresh, b.targets)) for b in block.bindings]
        bindings = tuple(Binding(t, self.expression(b.value)) for t, b in zip(targets, block.bindings, strict=True))
        return Block(bindings, map_terminator(block.terminator, self.atom, lambda name: self.labels.get(name, name)))

    def expression(self, expression: Expr) -> Expr:
        return map_parts(
            expression, atom=self.atom, block=self.block, var=self.fresh, label=self.fresh_label, dims=self.dims
        )


def copy_block(
    block: Block,
    mapping: Mapping[Var, Atom] | None = None,
    labels: Mapping[LoopLabel, LoopLabel] | None = None,
    keep_sizes: bool = False,
) -> Block:
    """A copy in which everything bound is fresh, free variables are mapped to atoms and free labels to labels.

    `keep_sizes`: the copy is for another function than the original, and makes the same data-dependent sizes.
    """
    return _Copy(mapping or {}, labels or {}, keep_sizes).block(block)


def copy_expression(expression: Expr, mapping: Mapping[Var, Atom] | None = None) -> Expr:
    """A copy of an expression in which everything bound inside it is fresh."""
    return _Copy(mapping or {}, {}).expression(expression)


def copy_function(
    function: Function,
    mapping: Mapping[Var, Atom] | None = None,
    keep_sizes: bool = True,
    dims: Mapping[DataDependentDim, DataDependentDim] | None = None,
) -> Function:
    """A copy of a function in which parameters, label and everything bound inside are fresh, but not the
    data-dependent sizes: functions that are called are given them. Without `keep_sizes` these are fresh, too, also in
    the local functions inside. `dims` are others for sizes that are made outside."""
    copy = _Copy(mapping or {}, {}, keep_sizes)
    copy.dims.update(dims or {})
    return _map_function(function, copy.atom, copy.block, copy.fresh, copy.fresh_label, copy.dims)
