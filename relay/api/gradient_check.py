"""Gradients checked against finite differences.

One element x of an argument is moved by t, and the result of f, F(x + t), is compared with the gradient F'(x):

    two points     (F(x + h) - F(x - h)) / 2h             for float64, where this already agrees
    many points    the slope at 0 of the polynomial of degree 4 that is nearest to F(x + t), -h <= t <= h

The residual of the polynomial is rounding, or what a polynomial cannot follow; its size s, but at least the rounding of
the result, bounds how far the slope may be off: s * |row of the least squares solution|. Small steps suffer from
rounding, large ones from the function's shape, so steps are tried until one is exact enough to judge. Where none is,
the check says that it cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import attrs
import ml_dtypes
import numpy as np

from relay.api.differentiation import vjp
from relay.api.templates import definition_of, readable_operand
from relay.calling.array import Array
from relay.errors import DifferentiationError, ExecutionError, TypeCheckError
from relay.ir.annotations.annotation import Ref
from relay.ir.expr import Function, Module
from relay.ir.traverse import walk
from relay.ir.tree import build_node, flatten, node_of, unflatten
from relay.ir.types import BaseType, TensorType

Path: TypeAlias = tuple["str | int", ...]
At: TypeAlias = Callable[[float], tuple[float, float, float]]
"""A measurement: the distance by which an element moved, the result of f there, and its rounding error."""


@attrs.frozen
class _Precision:
    """The accuracy that the coarsest float type of a program allows. `tolerance` is relative to the gradient, or to
    parts of the largest one where it is smaller: `least` for errors, `judged` for the differences."""

    name: str
    tolerance: float
    least: float
    judged: float

    @property
    def step(self) -> float:
        """The first step, relative to the argument: central differences err by about h^2 (the third derivative) and
        eps/h (rounding), so the cube root of eps is best."""
        return math.cbrt(float(ml_dtypes.finfo(self.name).eps))


_PRECISIONS = (
    _Precision("float64", 1e-5, 1e-3, 1e-1),
    _Precision("float32", 5e-3, 1e-2, 1e-1),
    _Precision("float16", 5e-2, 1e-1, 1.0),
    _Precision("bfloat16", 1e-1, 1e-1, 1.0),
)

_POINTS = 6
"""On each side."""

_CAUTION = 5.0
"""The number of standard errors by which a slope may be off: as many as that of t^5, the next term."""

_LARGEST_STEP = 5.0
"""Relative to the argument, as all steps."""


def check_gradient(
    f: Any,
    *arguments: Any,
    wrt: int | str | Sequence[int | str] | None = None,
    step: float | None = None,
    tolerance: float | None = None,
) -> float:
    """Compare the gradient of f at these arguments with finite differences.

    Every float element of the arguments is checked, in structures and data types, too. A result of several elements is
    multiplied with fixed weights and summed. float16 and float32 arguments become float64 before, so that differences
    are exact; where f's annotations ask for another type, they stay. Where f computes in a coarser type than float64,
    the check knows what its rounding does to differences: it tries several steps and takes the slope of a polynomial
    through many points.

    Args:
        wrt: the positions or names of the parameters that are checked, as for `grad`. Default: all.
        step: of the differences, relative to each element (at least to 1). Default: those that suit f.
        tolerance: the largest relative error that passes. Default: 1e-5; where f computes in float32 5e-3, in float16
            5e-2, in bfloat16 1e-1.

    Returns the largest relative error. Raises DifferentiationError if it exceeds the tolerance, or where rounding, or
    the function's shape, hides whether it does; the message says where.
    """
    found = _compare(f, arguments, wrt, step, tolerance)
    if found.wrong is not None or found.unclear is not None:
        raise found.wrong or found.unclear  # type: ignore[misc]
    return found.error


def wrong_gradient(f: Any, *arguments: Any) -> DifferentiationError | None:
    """The error of the gradient of f at these arguments, as `check_gradient` raises it; None if it is right, or if
    finite differences cannot tell."""
    return _compare(f, arguments, None, None, None).wrong


@attrs.frozen
class _Comparison:
    """The largest relative error, what is wrong, and what finite differences do not tell."""

    error: float
    wrong: DifferentiationError | None
    unclear: DifferentiationError | None


def _compare(
    f: Any,
    arguments: Sequence[Any],
    wrt: int | str | Sequence[int | str] | None,
    step: float | None,
    tolerance: float | None,
) -> _Comparison:
    """Compare the gradient of f at these arguments with finite differences, as `check_gradient` does."""
    f = readable_operand(f)
    definition_of(f, "check_gradient")
    static = [p.static for p in f._function.signature or ()][: len(arguments)]
    given = tuple(a if is_static else _copy_values(a) for a, is_static in zip_longest(arguments, static))
    wide = tuple(_map_floats(a, lambda leaf: leaf.astype(np.float64)) for a in given)
    try:
        module = f.typed(*wide)
        given = wide
    except TypeCheckError:
        module = f.typed(*given)
    precision = _precision(module, given)
    tolerance = precision.tolerance if tolerance is None else tolerance

    value, pullback = vjp(f, *given)
    weights = _map_floats(_numpy_values(value), _weights)
    found = pullback(_only_floats(weights))
    gradients = (found,) if len(given) == 1 else tuple(found)
    sizes = (np.abs(np.asarray(g, np.float64)) for _, g in _leaves(_numpy_values(gradients)))
    largest = max((float(np.max(s, where=np.isfinite(s), initial=0.0)) for s in sizes), default=0.0)
    check = _Check(f, given, weights, precision, step, tolerance, largest)

    worst, unclear = check.elements(gradients, _positions(f, wrt, len(given)))
    wrong = doubt = None
    if not worst.error <= tolerance:
        wrong = DifferentiationError(
            f"the gradient of {f.__name__} with respect to {worst.where} is {worst.gradient:.9g}, finite differences"
            f" give {worst.expected:.9g}: a relative error of {worst.error:.2g}, more than {tolerance:g}",
            f._function.span,
        )
    if unclear is not None:
        doubt = DifferentiationError(
            f"check_gradient cannot tell whether the gradient of {f.__name__} with respect to {unclear.where},"
            f" {unclear.gradient:.9g}, is right to {tolerance:g}: {unclear.doubt}",
            f._function.span,
            help=_help(precision),
        )
    return _Comparison(worst.error, wrong, doubt)


def _help(precision: _Precision) -> str:
    other = "pass another `step` or `tolerance`"
    if precision.name == "float64":
        return f"check it where the function is smooth, or {other}"
    return f"f computes in {precision.name}: leave its dtypes open, so that it can be checked in float64, or {other}"


def _precision(module: Module, arguments: tuple[Any, ...]) -> _Precision:
    """That of the coarsest float type in which anything is computed, or passed."""
    names = {leaf.dtype.name for a in arguments for _, leaf in _leaves(a)}
    for function in module.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                for target in binding.targets:
                    if isinstance(target.type, TensorType) and isinstance(target.type.base, BaseType):
                        names.add(target.type.base.name)
    return [p for p in _PRECISIONS if p.name in names or p.name == "float64"][-1]


# ---- one element


@attrs.frozen
class _Slope:
    """A slope by finite differences. `error` is how far they may be off, infinite where they tell nothing."""

    step: float
    value: float
    error: float
    moved: bool  # whether anything changed


@attrs.frozen
class _Verdict:
    error: float  # relative; 0 in doubt
    gradient: float
    expected: float
    where: str = ""
    doubt: str | None = None  # why nothing can be said


@attrs.frozen
class _Check:
    """The check of a function's gradient at given arguments. `largest` is the largest element of the gradient."""

    f: Any
    given: tuple[Any, ...]
    weights: Any
    precision: _Precision
    step: float | None
    tolerance: float
    largest: float

    def elements(self, gradients: Any, checked: Container[int]) -> tuple[_Verdict, _Verdict | None]:
        """Compare the gradients with respect to the arguments at the `checked` positions: the worst verdict, and the
        first that is in doubt."""
        worst = _Verdict(0.0, 0.0, 0.0)
        unclear: _Verdict | None = None
        for path, leaf in list(_leaves(self.given)):
            if path[0] not in checked:
                continue
            gradient = np.asarray(_leaf_at(gradients, path))
            for index in np.ndindex(leaf.shape):
                verdict = self.element(path, leaf, index, float(gradient[index]))
                if not verdict.error <= worst.error:  # also for NaN
                    worst = verdict
                if verdict.doubt is not None:
                    unclear = unclear or verdict
        return worst, unclear

    def element(self, path: Path, leaf: np.ndarray, index: tuple[int, ...], gradient: float) -> _Verdict:
        """Compare one element of the gradient."""
        unit = max(1.0, abs(float(leaf[index])))
        where = _element_name(self.f, path, index)

        def value_at(change: float) -> tuple[float, float, float]:
            moved = leaf.copy()
            moved[index] += change
            total, rounding = self._total(_replace_leaf(self.given, path, moved))
            return float(moved[index].astype(np.float64) - leaf[index].astype(np.float64)), total, rounding

        step = unit * (self.precision.step if self.step is None else self.step)
        if not math.isfinite(gradient):
            return _Verdict(math.inf, gradient, _difference(value_at, step).value, where)
        size = self.largest or 1e-2 * abs(value_at(0.0)[1])  # what small gradients are compared with
        if self.precision.name == "float64":
            slope = _difference(value_at, step)
            error = self._error(gradient, slope, size)
            if self._suffices(gradient, slope, size) and error <= self.tolerance:
                return _Verdict(error, gradient, slope.value, where)
        steps = [step]
        if self.step is None:
            up = math.ceil(math.log(_LARGEST_STEP / self.precision.step, 4))
            steps += [step * 4.0**power for power in (*range(1, up + 1), *range(-1, -4, -1))]
        return self._judge_element(value_at, steps, gradient, size, where)

    def _judge_element(self, at: At, steps: Iterable[float], gradient: float, size: float, where: str) -> _Verdict:
        """Compare the gradient with fitted slopes, by one step after the other."""
        seen: list[_Slope] = []
        best = _Slope(0.0, math.nan, math.inf, moved=False)
        for slope in (_fit_slope(at, step) for step in steps):
            best = min(best, slope, key=lambda s: (math.isinf(s.error), not s.moved, s.error))
            hidden = not slope.moved and gradient and self.precision.name != "float64"
            if hidden or not self._suffices(gradient, slope, size):
                continue
            error = self._error(gradient, slope, size)
            if error <= self.tolerance and not seen:
                return _Verdict(error, gradient, slope.value, where)
            seen.append(slope)
            if len(seen) == 2:
                break
        if seen and abs(seen[0].value - seen[-1].value) <= seen[0].error + seen[-1].error:
            return _Verdict(self._error(gradient, seen[0], size), gradient, seen[0].value, where)
        return _Verdict(0.0, gradient, best.value, where, _reason_for_doubt(seen, best))

    def _suffices(self, gradient: float, slope: _Slope, size: float) -> bool:
        """True if a slope is exact enough to judge the gradient by."""
        return slope.error <= self.tolerance * max(abs(gradient), abs(slope.value), self.precision.judged * size)

    def _error(self, gradient: float, slope: _Slope, size: float) -> float:
        """The relative error of the gradient; of one that rounding hides, relative to what it hides."""
        least = max(self.precision.least * size, slope.error / self.tolerance, 1e-30)
        return abs(gradient - slope.value) / max(abs(gradient), abs(slope.value), least)

    def _total(self, arguments: tuple[Any, ...]) -> tuple[float, float]:
        """The weighted sum of what f gives, and the standard deviation that rounding f's result has in it."""
        try:
            result = _numpy_values(self.f(*arguments))
        except ExecutionError:
            return math.nan, math.nan  # the step left what f is defined for
        total, variances = [], []
        for (_, value), (_, weight) in zip(_leaves(result), _leaves(self.weights), strict=True):
            terms = np.asarray(value, np.float64) * np.asarray(weight, np.float64)
            total.append(float(np.sum(terms)))
            variances.append(float(np.sum(np.square(terms))) * float(ml_dtypes.finfo(value.dtype).eps) ** 2 / 12)
        if not all(map(math.isfinite, (*total, *variances))):
            return math.nan, math.nan
        return math.fsum(total), math.sqrt(math.fsum(variances))


def _reason_for_doubt(seen: list[_Slope], best: _Slope) -> str:
    """The reason why nothing can be said."""
    if len(seen) == 2:
        a, b = seen
        return f"finite differences give {a.value:.9g} with the step {a.step:.2g}, {b.value:.9g} with {b.step:.2g}"
    if math.isinf(best.error):
        return "the function is not finite nearby"
    if not best.moved:
        return f"a step of {best.step:.2g} does not change the result"
    return f"finite differences give {best.value:.9g} ± {best.error:.2g}, with the step {best.step:.2g}"


def _difference(at: At, step: float) -> _Slope:
    """The central difference; its error is that of rounding alone."""
    (a, below, _), (b, above, rounding) = at(-step), at(step)
    if not math.isfinite(above - below) or a == b:
        return _Slope(step, math.nan, math.inf, moved=True)
    return _Slope(step, (above - below) / (b - a), _CAUTION * rounding / step, moved=above != below)


def _fit_slope(at: At, step: float) -> _Slope:
    """The slope at 0 of the nearest polynomial of degree 4."""
    points = [at(step * k / _POINTS) for k in range(-_POINTS, _POINTS + 1)]
    places, values, roundings = (np.array(column) for column in zip(*points, strict=True))
    if not np.all(np.isfinite(values)) or len(set(places)) < 7:
        return _Slope(step, math.nan, math.inf, moved=True)
    powers = np.vander(places / step, 5, increasing=True)
    solution = np.linalg.pinv(powers)
    changes = values - values[_POINTS]
    coefficients = solution @ changes
    left = float(np.sum(np.square(changes - powers @ coefficients)))
    spread = max(math.sqrt(left / (len(points) - 5)), float(np.max(roundings)))
    error = _CAUTION * spread * float(np.linalg.norm(solution[1])) / step
    return _Slope(step, float(coefficients[1]) / step, error, moved=bool(np.any(changes)))


def _positions(f: Any, wrt: int | str | Sequence[int | str] | None, count: int) -> set[int]:
    """The positions of the arguments that are checked. Raises TypeCheckError for parameters that there are not."""
    if wrt is None:
        return set(range(count))
    names = [p.name for p in f._function.parameters]
    found = set()
    for item in (wrt,) if isinstance(wrt, int | str) else wrt:
        position = names.index(item) if item in names else item
        if isinstance(position, str) or not -len(names) <= position < len(names):
            raise TypeCheckError(f"wrt: there is no parameter {item!r}; there are {', '.join(names)}")
        found.add(position % len(names))
    return found


def _weights(leaf: np.ndarray) -> np.ndarray:
    """Fixed numbers between 1 and 2, bare ones for a single element."""
    spread = np.cos(np.arange(leaf.size, dtype=np.float64)) / 2 + 1.5 if leaf.size > 1 else np.ones(leaf.size)
    return spread.reshape(leaf.shape).astype(leaf.dtype)


# ---- structures of arrays


def _numpy_values(value: Any) -> Any:
    """The value with NumPy arrays in place of Relay's."""
    return _map_leaves(value, lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf)


def _copy_values(value: Any) -> Any:
    def leaf(part: Any) -> Any:
        return np.array(part) if isinstance(part, np.ndarray | np.generic | Array | float) else part

    return _map_leaves(value, leaf)


def _map_floats(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The structure with its float arrays changed."""
    return _map_leaves(value, lambda leaf: change(leaf) if _is_float(leaf) else leaf)


def _only_floats(value: Any) -> Any:
    return _map_leaves(value, lambda leaf: leaf if _is_float(leaf) else None)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and (leaf.dtype.kind == "f" or leaf.dtype.name == "bfloat16")


def _parts(value: Any) -> dict[str | int, Any] | None:
    """The parts of a structure or of a value of a data type, by name or position; None for a reference."""
    found = None if isinstance(value, Ref) else node_of(value)
    return None if found is None else dict(zip(found[0].form.names or range(found[0].count), found[1], strict=True))


def _rebuild(value: Any, parts: list[Any]) -> Any:
    found = node_of(value)
    assert found is not None
    return build_node(found[0], parts)


def _map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    leaves, structure = flatten(value, lambda part: isinstance(part, Ref))
    return unflatten(structure, list(map(change, leaves)))


def _leaves(value: Any) -> Iterator[tuple[Path, np.ndarray]]:
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, part = pending.pop()
        parts = _parts(part)
        if parts is not None:
            pending += [((*path, key), inner) for key, inner in reversed(parts.items())]
        elif _is_float(part):
            yield path, part


def _leaf_at(value: Any, path: Path) -> Any:
    for key in path:
        value = (_parts(value) or {})[key]
    return value


def _replace_leaf(value: Any, path: Path, new: Any) -> Any:
    around = []
    for key in path:
        around.append((value, key))
        value = (_parts(value) or {})[key]
    for outer, key in reversed(around):
        new = _rebuild(outer, [new if k == key else part for k, part in (_parts(outer) or {}).items()])
    return new


def _element_name(f: Any, path: Path, index: tuple[int, ...]) -> str:
    position, *rest = path
    parameters = f._function.parameters
    assert isinstance(position, int)
    name = parameters[position].name if position < len(parameters) else f"argument {position}"
    inside = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in rest)
    element = f"[{', '.join(map(str, index))}]" if index else ""
    return f"{name}{inside}{element}"
