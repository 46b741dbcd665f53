"""Sums of products over named axes: einsum, and the products of NumPy that are cases of it.

The order of an einsum's pairwise products is the cheapest one for up to six operands (by dynamic programming over
subsets), and greedily chosen beyond. A product is one `matmul` of its operands with their axes sorted into those of
both that stay, those of one, and those that are summed over.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.errors import ShapeError
from relay.ir.axes import AxisNames
from relay.ir.types import Dim, Shape, show_shape
from relay.operator.axes import AxesDiffer, carries
from relay.ops.notation import Algebra, Batch, Batching, Relation, Value, expansion
from relay.ops.samples import case, cases
from relay.typecheck.dims import equal, follows_equal, normalize_axes, product

_ALL_ORDERS = 6  # operands up to which the best order is looked for


# ---- subscripts


@attrs.frozen
class _Subscripts:
    """Labels of each operand and of the result. An ellipsis is one label "0", "1", .. for each of its axes, counted
    from the last one."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]


def _parse(subscripts: object, shapes: Sequence[Sequence[Any]]) -> _Subscripts:
    if not isinstance(subscripts, str):
        raise ShapeError(f"the subscripts of einsum must be a string such as 'ij,jk->ik', found {subscripts!r}")
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"the subscripts {subscripts!r} are for {len(terms)} operands, found {len(shapes)}")
    operands = [_labels(term, len(shape), subscripts, shape) for term, shape in zip(terms, shapes, strict=True)]
    dots = sorted({label for labels in operands for label in labels if label.isdigit()}, key=lambda d: -int(d))
    if arrow:
        before, ellipsis, after = right.partition("...")
        result = (*before, *(dots if ellipsis else ()), *after)
        if dots and not ellipsis:
            raise ShapeError(f"the result of {subscripts!r} leaves out the axes of the ellipsis")
    else:
        count = {label: left.count(label) for label in left if label.isalpha()}
        result = (*dots, *sorted(label for label, times in count.items() if times == 1))
    known = {label for labels in operands for label in labels}
    for label in result:
        if label not in known or result.count(label) > 1:
            raise ShapeError(f"the result of {subscripts!r} names {label!r} twice, or no operand does")
    return _Subscripts(tuple(operands), tuple(result))


def _labels(term: str, rank: int, subscripts: str, shape: Sequence[Any]) -> tuple[str, ...]:
    before, ellipsis, after = term.partition("...")
    letters = before + after
    if not all(letter.isalpha() for letter in letters) or len(letters) > rank or (len(letters) < rank and not ellipsis):
        raise ShapeError(f"the subscripts {term!r} in {subscripts!r} do not fit the shape {show_shape(tuple(shape))}")
    missing = rank - len(letters)
    return (*before, *(str(number) for number in reversed(range(missing))), *after)


def _sizes(parsed: _Subscripts, shapes: Sequence[Shape]) -> dict[str, Dim]:
    """The extent of each label; 1 gives way to others. Raises ShapeError where two differ."""
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(parsed.operands, shapes, strict=True):
        for label, dim in zip(labels, shape, strict=True):
            found = sizes.setdefault(label, dim)
            if found == 1:
                sizes[label] = dim
            elif dim != 1 and not equal(found, dim):
                listed = ", ".join(map(show_shape, shapes))
                raise ShapeError(
                    f"einsum of the shapes {listed}: the axes {label!r} have the extents {found} and {dim}"
                )
    return sizes


def _einsum_names(names: Sequence[AxisNames], *, subscripts: str) -> AxisNames:
    """Axes with one label have one name."""
    parsed = _parse(subscripts, names)
    found: dict[str, tuple[int, str]] = {}
    for operand, (labels, own) in enumerate(zip(parsed.operands, names, strict=True)):
        for label, name in zip(labels, own, strict=True):
            if name is not None and found.setdefault(label, (operand, name))[1] != name:
                raise AxesDiffer(found[label][0], operand, own, names[found[label][0]])
    return tuple(found[label][1] if label in found else None for label in parsed.result)


@carries(_einsum_names)
def _einsum_shape(shapes: Sequence[Shape], *, subscripts: str) -> Shape:
    parsed = _parse(subscripts, shapes)
    sizes = _sizes(parsed, shapes)
    return tuple(sizes[label] for label in parsed.result)


# ---- contraction of labeled values


@attrs.frozen
class _LabeledTensor:
    """A value whose axes have distinct labels."""

    value: Value
    labels: tuple[str, ...]


def _transpose_to(term: _LabeledTensor, labels: Sequence[str]) -> Value:
    """The value with its axes in this order."""
    axes = tuple(term.labels.index(label) for label in labels)
    return term.value if axes == tuple(range(len(axes))) else term.value.op("transpose", axes=axes)


def _reshape_to(value: Value, shape: Sequence[Dim]) -> Value:
    return value if value.shape == tuple(shape) else value.op("reshape", shape=tuple(shape))


def _simple_term(value: Value, labels: tuple[str, ...], sizes: Mapping[str, Dim], needed: set[str]) -> _LabeledTensor:
    """A term with distinct labels, all needed elsewhere: diagonals of repeated labels, sums over the others, and no
    axes of extent 1 that are broadcast."""
    kept = [i for i, label in enumerate(labels) if not (value.shape[i] == 1 and sizes[label] != 1)]
    value, labels = _reshape_to(value, [value.shape[i] for i in kept]), tuple(labels[i] for i in kept)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            value = value.op("transpose", axes=(*rest, first, second)).op("diagonal")
            labels = (*(labels[i] for i in rest), label)
    summed = tuple(i for i, label in enumerate(labels) if label not in needed)
    if summed:
        value, labels = value.op("sum", axis=summed), tuple(label for label in labels if label in needed)
    return _LabeledTensor(value, labels)


def _contract_terms(left: _LabeledTensor, right: _LabeledTensor, needed: set[str]) -> _LabeledTensor:
    """The product of two terms, summed over the labels that nothing needs any more."""
    both = [label for label in left.labels if label in right.labels]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    rows = [label for label in left.labels if label not in both]
    columns = [label for label in right.labels if label not in both]
    sizes = dict(zip((*left.labels, *right.labels), (*left.value.shape, *right.value.shape), strict=True))
    labels = (*batch, *rows, *columns)

    def extents(names: Sequence[str]) -> tuple[Dim, ...]:
        return tuple(sizes[name] for name in names)

    if not summed:
        a = _reshape_to(_transpose_to(left, (*batch, *rows)), (*extents(batch), *extents(rows), *(1 for _ in columns)))
        b = _reshape_to(
            _transpose_to(right, (*batch, *columns)), (*extents(batch), *(1 for _ in rows), *extents(columns))
        )
        return _LabeledTensor(a * b, labels)
    front = (product(extents(batch)),) if batch else ()
    inner = product(extents(summed))
    a = _reshape_to(_transpose_to(left, (*batch, *rows, *summed)), (*front, product(extents(rows)), inner))
    b = _reshape_to(_transpose_to(right, (*batch, *summed, *columns)), (*front, inner, product(extents(columns))))
    return _LabeledTensor(_reshape_to(a @ b, extents(labels)), labels)


def _cost(labels: set[str], sizes: Mapping[str, Dim]) -> float:
    """Multiplications of a product over these labels; a size that is not known counts as 64."""
    return math.prod(size if isinstance(size, int) else 64 for size in (sizes[label] for label in labels))


def _best_order(terms: Sequence[set[str]], result: set[str], sizes: Mapping[str, Dim]) -> list[tuple[int, int]]:
    """The products to make, as positions; each one's value is put at the end, and its operands removed."""
    count = len(terms)
    if count > _ALL_ORDERS:
        return _greedy_order(terms, result, sizes)

    def remaining_labels(subset: frozenset[int]) -> set[str]:
        inside = set[str]().union(*(terms[i] for i in subset))
        outside = result.union(*(terms[i] for i in range(count) if i not in subset))
        return inside & outside

    best: dict[frozenset[int], tuple[float, tuple[frozenset[int], frozenset[int]] | None]] = {
        frozenset([i]): (0.0, None) for i in range(count)
    }
    for size in range(2, count + 1):
        for chosen in map(frozenset, itertools.combinations(range(count), size)):
            choices: list[tuple[float, int, tuple[frozenset[int], frozenset[int]]]] = []
            first = min(chosen)
            for width in range(1, size):
                for part in map(frozenset, itertools.combinations(sorted(chosen), width)):
                    if first in part:
                        other = chosen - part
                        own = _cost(remaining_labels(part) | remaining_labels(other), sizes)
                        choices.append((best[part][0] + best[other][0] + own, len(choices), (part, other)))
            cost, _, split = min(choices)
            best[chosen] = (cost, split)
    order: list[tuple[int, int]] = []
    present = [frozenset([i]) for i in range(count)]

    def make(subset: frozenset[int]) -> None:
        split = best[subset][1]
        if split is not None:
            for part in split:
                make(part)
            pair = present.index(split[0]), present.index(split[1])
            order.append(pair)
            for part in split:
                present.remove(part)
            present.append(subset)

    make(frozenset(range(count)))
    return order


def _greedy_order(terms: Sequence[set[str]], result: set[str], sizes: Mapping[str, Dim]) -> list[tuple[int, int]]:
    present, order = [set(term) for term in terms], []
    while len(present) > 1:
        choices = [
            (_cost(present[i] | present[j], sizes), i, j) for i, j in itertools.combinations(range(len(present)), 2)
        ]
        _, i, j = min(choices)
        order.append((i, j))
        union = present[i] | present[j]
        rest = [term for k, term in enumerate(present) if k not in (i, j)]
        present = [*rest, union & result.union(*rest)]
    return order


def _batched_einsum(batch: Batch, operands: Sequence[Value], subscripts: str) -> Value:
    """Batched einsum: a letter that is not used names the axis of the examples."""
    parsed = _parse(subscripts, [type_.shape for type_ in batch.types])
    text = subscripts.replace(" ", "")
    letter = next(c for c in string.ascii_letters if c not in text)
    left, arrow, right = text.partition("->")
    if not arrow:
        right = "".join(["..."] * ("..." in left) + [label for label in parsed.result if label.isalpha()])
    terms = [letter * marked + term for marked, term in zip(batch.batched, left.split(","), strict=True)]
    return batch.call(*operands, subscripts=f"{','.join(terms)}->{letter}{right}")


@expansion(
    relation=Relation("T:number.. -> T", _einsum_shape),
    algebra=Algebra(of_booleans="booleans"),
    batching=Batching(rule=_batched_einsum),
    sampler=cases(
        case((2, 3), (3, 4), subscripts="ij,jk->ik"),
        case((5, 2, 3), (5, 3, 4), subscripts="bij,bjk"),
        case((3, 3), subscripts="ii"),
        case((2, 3, 3), subscripts="bii->ib"),
        case((2, 3), (4,), (3, 4), subscripts="ij,k,jk->ki"),
        case((2, 1, 3), (4, 3, 2), subscripts="...ij,...jk->...ik"),
        case((2, 3), (2, 3), subscripts="ij,ij->"),
        case((2, 3), (1, 3), subscripts="ij,ij->ij"),
        case((2, 0), (0, 3), subscripts="ij,jk->ik"),
        case((2, 3), subscripts="ij->ji"),
    ),
)
def einsum(subscripts: str, *operands: Value) -> Value:
    """The sum of products that subscripts describe, as NumPy's: a letter for each axis, summed over unless the result
    names it; without `->` the result has the letters that occur once, sorted. `...` are further axes, which are
    broadcast. operands: (T, s).. -> (T, the extents of the result's letters).

    >>> relay.einsum("ij,jk->ik", np.float32([[1, 2]]), np.float32([[3], [4]]))
    Array([[11.]], dtype=float32)
    """
    shapes = [operand.shape for operand in operands]
    parsed = _parse(subscripts, shapes)
    sizes = _sizes(parsed, shapes)
    terms: list[_LabeledTensor] = []
    for position, (operand, labels) in enumerate(zip(operands, parsed.operands, strict=True)):
        others = (parsed.operands[i] for i in range(len(operands)) if i != position)
        terms.append(_simple_term(operand, labels, sizes, set(parsed.result).union(*others)))
    for i, j in _best_order([set(t.labels) for t in terms], set(parsed.result), sizes):
        rest = [term for k, term in enumerate(terms) if k not in (i, j)]
        needed = set(parsed.result).union(*(term.labels for term in rest))
        terms = [*rest, _contract_terms(terms[i], terms[j], needed)]
    (last,) = terms
    present = [label for label in parsed.result if label in last.labels]
    whole = tuple(sizes[label] for label in parsed.result)
    partial = [sizes[label] if label in last.labels else 1 for label in parsed.result]
    value = _reshape_to(_transpose_to(last, present), partial)
    return value if value.shape == whole else value.op("broadcast_to", shape=whole)


# ---- NumPy's products


def _contract_axes(x: Value, y: Value, axes_x: Sequence[int], axes_y: Sequence[int]) -> Value:
    """The sum over pairs of axes; the result has the other axes of x, then those of y."""
    x_labels = [f"x{i}" for i in range(x.ndim)]
    y_labels = [f"y{i}" for i in range(y.ndim)]
    for i, j in zip(axes_x, axes_y, strict=True):
        y_labels[j] = x_labels[i]
    kept = [label for i, label in enumerate(x_labels) if i not in axes_x]
    kept += [label for j, label in enumerate(y_labels) if j not in axes_y]
    return _contract_terms(_LabeledTensor(x, tuple(x_labels)), _LabeledTensor(y, tuple(y_labels)), set(kept)).value


def _pairs(left: Shape, right: Shape, axes: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, int) and not isinstance(axes, bool):
        if not 0 <= axes <= min(len(left), len(right)):
            raise ShapeError(
                f"tensordot over {axes} axes of the shapes {show_shape(left)} and {show_shape(right)}: there are fewer"
            )
        return tuple(range(len(left) - axes, len(left))), tuple(range(axes))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise ShapeError(f"the axes of tensordot are a number or a pair of sequences, found {axes!r}")
    sides = [(side,) if isinstance(side, int) else tuple(side) for side in axes]
    places = [
        tuple(normalize_axes((axis,), len(s))[0] for axis in side) for side, s in zip(sides, (left, right), strict=True)
    ]
    if len(places[0]) != len(places[1]) or any(len(set(side)) != len(side) for side in places):
        raise ShapeError(f"the axes of tensordot must be pairs of distinct axes, found {axes!r}")
    return places[0], places[1]


def _tensordot_shape(left: Shape, right: Shape, *, axes: object) -> Shape:
    first, second = _pairs(left, right, axes)
    for i, j in zip(first, second, strict=True):
        if not equal(left[i], right[j]):
            raise ShapeError(
                f"tensordot of the shapes {show_shape(left)} and {show_shape(right)}: axis {i} has extent {left[i]},"
                f" axis {j} of the other {right[j]}"
            )
    kept = [dim for i, dim in enumerate(left) if i not in first]
    return (*kept, *(dim for j, dim in enumerate(right) if j not in second))


@expansion(
    relation=Relation("T:number, T -> T", _tensordot_shape),
    algebra=Algebra(of_booleans="booleans"),
    sampler=cases(
        case((2, 3, 4), (3, 4, 5)),
        case((2, 3), (3, 4), axes=1),
        case((2, 3), (4,), axes=0),
        case((2, 3, 4), (4, 2), axes=((0, -1), (1, 0))),
        case((0, 3), (3, 2), axes=1),
    ),
)
def tensordot(x: Value, y: Value, axes: int | tuple[tuple[int, ...], tuple[int, ...]] = 2) -> Value:
    """The sum of products over the last axes of x and the first of y, or over pairs of axes.
    x: (T, s), y: (T, t) -> (T, (*s without its axes, *t without its axes)).

    >>> relay.tensordot(np.float32([[1, 2]]), np.float32([[3], [4]]), axes=1)
    Array([[11.]], dtype=float32)
    """
    first, second = _pairs(x.shape, y.shape, axes)
    return _contract_axes(x, y, first, second)


def _dot_shape(left: Shape, right: Shape) -> Shape:
    if not left or not right:
        return (*left, *right)
    return _tensordot_shape(left, right, axes=((len(left) - 1,), (max(len(right) - 2, 0),)))


@expansion(
    relation=Relation("T:number, T -> T", _dot_shape),
    algebra=Algebra(of_booleans="booleans"),
    sampler=cases(case((3,), (3,)), case((2, 3), (3, 4)), case((), (2, 3)), case((2, 3), (4, 3, 2)), case((0,), (0,))),
)
def dot(x: Value, y: Value) -> Value:
    """NumPy's product: the sum over the last axis of x and the last but one of y (the only one of a vector); with a
    rank of 0 on either side the plain product. x: (T, (*s, k)), y: (T, (*t, k, n)) -> (T, (*s, *t, n)).

    >>> relay.dot(np.float32([1, 2]), np.float32([3, 4]))
    Array(11., dtype=float32)
    """
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if y.ndim <= 2:
        return x @ y
    return _contract_axes(x, y, (x.ndim - 1,), (y.ndim - 2,))


def _outer_shape(left: Shape, right: Shape) -> Shape:
    return (product(left), product(right))


@expansion(
    relation=Relation("T:number, T -> T", _outer_shape),
    algebra=Algebra(of_booleans="booleans"),
    sampler=cases(case((2,), (3,)), case((2, 2), (3,)), case((), (0,)), case((1,), (1,))),
)
def outer(x: Value, y: Value) -> Value:
    """All products of an element of x with one of y, both as vectors.
    x: (T, s), y: (T, t) -> (T, (product(s), product(t))).

    >>> relay.outer(np.float32([1, 2]), np.float32([10, 20]))
    Array([[10., 20.],
           [20., 40.]], dtype=float32)
    """
    return _reshape_to(x, (product(x.shape), 1)) * _reshape_to(y, (1, product(y.shape)))


def _batch_matmul_shape(left: Shape, right: Shape, *, transpose_x: bool, transpose_y: bool) -> Shape:
    if len(left) != 3 or len(right) != 3:
        raise ShapeError(f"batch_matmul needs operands of rank 3, found {show_shape(left)} and {show_shape(right)}")
    rows, inner = (left[2], left[1]) if transpose_x else (left[1], left[2])
    other, columns = (right[2], right[1]) if transpose_y else (right[1], right[2])
    for found, wanted, what in ((left[0], right[0], "batches"), (inner, other, "inner extents")):
        if follows_equal(found, wanted) is not True and not equal(found, wanted):
            raise ShapeError(
                f"batch_matmul of the shapes {show_shape(left)} and {show_shape(right)}: the {what} {found} and"
                f" {wanted} differ"
            )
    return (left[0], rows, columns)


@expansion(
    relation=Relation("T:number, T -> T", _batch_matmul_shape),
    sampler=cases(
        case((2, 3, 4), (2, 4, 5)),
        case((2, 4, 3), (2, 5, 4), transpose_x=True, transpose_y=True),
        case((0, 2, 3), (0, 3, 1)),
    ),
)
def batch_matmul(x: Value, y: Value, transpose_x: bool = False, transpose_y: bool = False) -> Value:
    """The matrix product in each batch, of matrices that may be transposed.
    x: (T, (b, m, k)), y: (T, (b, k, n)) -> (T, (b, m, n)).

    >>> relay.batch_matmul(np.float32([[[1, 2]]]), np.float32([[[3, 4]]]), transpose_y=True)
    Array([[[11.]]], dtype=float32)
    """
    left = x.op("transpose", axes=(0, 2, 1)) if transpose_x else x
    right = y.op("transpose", axes=(0, 2, 1)) if transpose_y else y
    return left @ right
