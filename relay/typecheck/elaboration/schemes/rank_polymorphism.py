"""Shape rules over one shape variable that do not depend on its rank: `x @ w` for `(*s, n)` and `(n, m)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import RelayError, Span, TypeMismatch
from relay.ir.dims import DataDependentDim, resolve_dim, variables
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    FLOAT32,
    INT32,
    Base,
    BaseType,
    Kind,
    Shape,
    TensorType,
    Type,
    TypeId,
    Unknown,
    type_variables,
)
from relay.operator import Undetermined
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    SliceItem,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.schemes.rank_n_types import discarded_elaboration
from relay.typecheck.unification import flat_shape, resolve

TRIED_RANKS = 3
"""For how many ranks of a shape variable a rule is tried, from 0 on."""


def solve_at_any_rank(
    checker: Checker, shapes: Sequence[Shape], rule: Callable[[Sequence[Shape]], object], result: Unknown
) -> bool:
    """Solve a rule over shapes with one variable, if its result is of one form for all ranks: false if it is not."""
    form = _at_any_rank(checker, [flat_shape(s) for s in shapes], rule)
    if form is None:
        return False
    checker.solver.unify_shape((result,), form)
    return True


def _at_any_rank(checker: Checker, shapes: Sequence[Shape], rule: Callable[[Sequence[Shape]], object]) -> Shape | None:
    """The result of a rule over shapes with one variable, if it is of the same form for all ranks that are tried, and
    needs nothing of the dims."""
    assumed = len(checker.hints.assumed)
    found = {d for shape in shapes for d in shape if isinstance(d, TypeId | Unknown) and d.kind is Kind.Shape}
    makes = any(isinstance(v, DataDependentDim) for shape in shapes for d in shape for v in variables(resolve_dim(d)))
    if len(found) != 1 or makes:  # what is found out of data-dependent sizes stays
        return None
    (variable,) = found
    axes = tuple(TypeId(f"d{axis}", Kind.Dim) for axis in range(TRIED_RANKS - 1))
    results: list[Shape] = []
    for rank in range(TRIED_RANKS):
        tried = [tuple(x for d in s for x in (axes[:rank] if d is variable else (d,))) for s in shapes]
        try:
            results.append(rule(tried))  # type: ignore[arg-type]
        except (Undetermined, TypeMismatch):
            return None
        if len(checker.hints.assumed) > assumed:
            del checker.hints.assumed[assumed:]
            return None
    return _common_form(results, axes, variable)


def indexed_at_any_rank(
    checker: Checker, entity: AbstractValue, items: Sequence[AbstractValue | SliceItem], span: Span | None
) -> DynamicValue | None:
    """`x[items]` of a tensor with dims around one open shape, if that does not matter: `x[0]` for `(n, *s)`."""
    type_ = resolve(entity.type) if isinstance(entity, DynamicValue) else None
    if not isinstance(type_, TensorType) or any(isinstance(i, DynamicValue) for i in items):
        return None

    needs: list[tuple[DimConstraint, ...]] = []

    def rule(shapes: Sequence[Shape]) -> Shape:
        before, assumed = checker.hints.snapshot(), len(checker.hints.assumed)
        try:
            found = checker.engine.index(
                checker, TypedBlockBuilder(), DynamicValue(atom, TensorType(type_.base, shapes[0])), items, span
            )
        except (DependsOnPoison, RelayError):
            raise Undetermined from None
        finally:
            needs.append(tuple(checker.hints.assumed[assumed:]))
            del checker.hints.assumed[assumed:]
            checker.hints.restore(before)
        if not isinstance(found, DynamicValue) or not isinstance(at := resolve(found.type), TensorType):
            raise Undetermined
        return flat_shape(at.shape)

    atom = entity.atom  # type: ignore[union-attr]
    with discarded_elaboration(checker):
        form = _at_any_rank(checker, [flat_shape(type_.shape)], rule)
    if form is None or any(other != needs[0] for other in needs):
        return None
    for constraint in needs[0]:
        checker.hints.need(constraint.left, constraint.right)
    found = TensorType(type_.base, form)
    return DynamicValue(checker.variable("part", found, span), found)


def inferred_at_any_rank(
    checker: Checker, types: Sequence[Type], infer: Callable[[Sequence[Type]], Type]
) -> TensorType | None:
    """The result of an operator whose type is a function of types, for tensors of one open element type and one open
    shape: if it is of that element type for floats and integers, and of the same form for all ranks."""
    tensors = [t for t in map(resolve, types) if isinstance(t, TensorType)]
    bases = {t.base for t in tensors}
    if len(tensors) < len(types) or len(bases) != 1:
        return None
    (base,) = bases
    tried: list[Base] = [base]
    if isinstance(base, Unknown):
        tried = [b for b in (FLOAT32, INT32) if base.classes is None or b.base_class in base.classes]
    forms: list[Shape] = []
    for candidate in tried:

        def rule(shapes: Sequence[Shape], candidate: Base = candidate) -> Shape:
            result = infer([TensorType(candidate, s) for s in shapes])
            if not isinstance(result, TensorType) or result.base != candidate:
                raise Undetermined
            return result.shape

        form = _at_any_rank(checker, [flat_shape(t.shape) for t in tensors], rule)
        if form is not None:
            forms.append(form)
    if not forms or len(forms) < len(tried) or any(f != forms[0] for f in forms):
        return None
    checker.solver.restrict(base, frozenset(b.base_class for b in tried if isinstance(b, BaseType)))
    return TensorType(base, forms[0])


def _common_form(results: Sequence[Shape], axes: Shape, variable: TypeId | Unknown) -> Shape | None:
    """The shape with the variable that each of these results is for its rank."""
    first = results[0]
    for at in range(len(first) + 1):
        before, behind = first[:at], first[at:]
        if all(r == (*before, *axes[:rank], *behind) for rank, r in enumerate(results)):
            return (*before, variable, *behind)
    if all(r == first for r in results) and not set(type_variables(first)) & set(axes):
        return first
    return None
