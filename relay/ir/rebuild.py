"""Rebuilding of expressions, blocks and functions: with other atoms, blocks and variables, and as copies.

The parts of a node follow from its declaration (`relay.ir.node`). Everything recurses on nesting and loops on length,
and returns new nodes where something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import is_
from typing import Any, TypeVar, assert_never

from relay.ir.dims import DataDependentDim, Dim, DimExpr, TypeId, made_dim
from relay.ir.dims import substitute as substitute_dim
from relay.ir.expr import (
    Arm,
    Atom,
    AttributeValue,
    BindDim,
    Binding,
    Block,
    Constant,
    Dead,
    Exit,
    Expr,
    Function,
    Global,
    If,
    LoopLabel,
    Match,
    MatchArm,
    Next,
    OpCall,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.node import ByClass, rebuilder
from relay.ir.traverse import NESTING, Branch, bodies
from relay.ir.types import Type, map_dims

_T = TypeVar("_T")


def _identity(part: _T) -> _T:
    return part


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

    An expression in which nothing changes is the same object, unless it is copied: where `var` is given.
    """
    keeps = var is _identity and not dims
    if keeps and expression.__class__ is OpCall:  # most expressions: quicker than going through the cases
        arguments = expression.arguments
        new_arguments = tuple(map(atom, arguments))
        if all(map(is_, new_arguments, arguments)):
            return expression
        return OpCall(expression.operator, new_arguments, expression.attributes, expression.span)
    made: Expr = _Rebuilding(atom, block, var, label, dims).part(expression)
    return made


class _Rebuilding:
    """The replacements for each part of a node."""

    __slots__ = ("atom", "block", "dims", "keeps", "label", "renames", "var")

    def __init__(
        self,
        atom: Callable[[Atom], Atom],
        block: Callable[[Block], Block],
        var: Callable[[Var], Var],
        label: Callable[[LoopLabel], LoopLabel],
        dims: Mapping[DataDependentDim, DataDependentDim] | None,
    ) -> None:
        self.atom = atom
        self.block = block
        self.var = var
        self.label = label
        self.dims = dims or {}
        self.renames = bool(dims)
        self.keeps = var is _identity and not dims

    def part(self, node: Any) -> Any:
        """A node with other parts; an atom becomes its replacement."""
        return _REBUILD[node.__class__](node, self)

    def shared_rebuilding(self) -> _Rebuilding:
        """The same for parts that bind the same variables, which are asked for once."""
        return _Rebuilding(self.atom, self.block, cache(self.var), self.label, self.dims)

    def type(self, type_: Type) -> Type:
        return renamed_type(type_, self.dims)

    def dim(self, dim: Dim) -> Dim:
        return _renamed_dim(dim, self.dims)

    def new_dim(self, dim: DataDependentDim) -> DataDependentDim:
        return self.dims.get(dim, dim)

    def attributes(self, attributes: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
        return {name: renamed_attribute(value, self.dims) for name, value in attributes.items()}


_REBUILD: ByClass[Callable[[Any, _Rebuilding], Any]] = ByClass(rebuilder)
_REBUILD.update(dict.fromkeys((Var, Constant, Global, Static), lambda atom, how: how.atom(atom)))


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


def map_atoms(expression: Expr, function: Callable[[Atom], Atom]) -> Expr:
    """The expression reading other atoms. Its blocks stay as they are."""
    return map_parts(expression, atom=function)


def map_blocks(expression: Expr, function: Callable[[Block], Block]) -> Expr:
    """The expression with other blocks directly inside it; the same one if it has no blocks."""
    return map_parts(expression, block=function) if expression.__class__ in NESTING else expression


def map_branch(branch: Branch, change: Callable[[Block], Block]) -> Branch:
    """The branch with other bodies; conditions and fields stay."""
    return with_bodies(branch, [change(body) for body in bodies(branch)])


def with_bodies(branch: Branch, blocks: Sequence[Block]) -> Branch:
    """The same choice between other blocks."""
    if isinstance(branch, Match):
        arms = (MatchArm(a.constructor, a.fields, b) for a, b in zip(branch.arms, blocks, strict=True))
        return Match(branch.value, tuple(arms), branch.span)
    choices = (Arm(a.condition, b) for a, b in zip(branch.arms, blocks[:-1], strict=True))
    return If(tuple(choices), blocks[-1], branch.span)


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
    return with_values(terminator, values, label)


def with_values(
    terminator: Terminator, values: tuple[Atom, ...], label: Callable[[LoopLabel], LoopLabel] = _identity
) -> Terminator:
    """The terminator passing on other values, which may be more or fewer."""
    match terminator:
        case Yield(_, span):
            return Yield(values, span)
        case Next(target, _, span):
            return Next(label(target), values, span)
        case Exit(target, _, span):
            return Exit(label(target), values, span)
        case Dead():
            return terminator
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

    def fresh_variable(self, var: Var) -> Var:
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
        targets = [tuple(map(self.fresh_variable, b.targets)) for b in block.bindings]
        bindings = tuple(Binding(t, self.expression(b.value)) for t, b in zip(targets, block.bindings, strict=True))
        return Block(bindings, map_terminator(block.terminator, self.atom, lambda name: self.labels.get(name, name)))

    def expression(self, expression: Expr) -> Expr:
        return map_parts(
            expression,
            atom=self.atom,
            block=self.block,
            var=self.fresh_variable,
            label=self.fresh_label,
            dims=self.dims,
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
    data-dependent sizes: callees receive them. Without `keep_sizes` these are fresh, too, also in the local
    functions inside. `dims` replaces sizes that are bound outside."""
    copy = _Copy(mapping or {}, {}, keep_sizes)
    copy.dims.update(dims or {})
    made: Function = _Rebuilding(copy.atom, copy.block, copy.fresh_variable, copy.fresh_label, copy.dims).part(function)
    return made
