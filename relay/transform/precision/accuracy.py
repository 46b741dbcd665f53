"""Forms of expressions that lose fewer digits, found by trying (after Herbie: Panchekha and others, 2015).

    y = subtract(sqrt(x + 1), sqrt(x))       on [1, 1e12]: 1 / (sqrt(x + 1) + sqrt(x))

Straight-line code is run on samples of its variables. For each operator call with other forms in the table
(`relay.ops.rewrites.stable_forms`) these are run on the same operands, too, and both are compared with the same
expression on real numbers (`exact_numbers`), which the operators just before it are computed with, too. As in Herbie,
digits are added until the result has enough of them. The form that loses the fewest bits replaces the call, where it
gains at least half a bit on average:

    bits lost = mean of log2(1 + |found - exact| / distance between neighboring floats)
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from decimal import Decimal

import attrs
import numpy as np

from relay.errors import RelayError, Span
from relay.ir.expr import Atom, Binding, Block, Constant, Expr, Function, Module, OpCall, Var
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import bound_variables, walk
from relay.ir.types import BaseClass, BaseType, TensorType
from relay.operator import lookup
from relay.operator.rewriting import Application, stable_forms_of
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass
from relay.transform.precision.exact_numbers import digits, exact_array

LOW, HIGH, SAMPLES = -1e4, 1e4, 256
"""The range from which variables without a range are sampled, and the number of a result's elements that are
compared."""

_GAIN = 0.5  # bits
_CONE = 24  # operator calls that are computed again on real numbers
_DIGITS = (30, 60, 150, 400)
_NEAR = Decimal(2) ** -63
_ROUNDS = 8  # how often a form may be improved again
_FAILURES = (RelayError, ArithmeticError, TypeError, ValueError, IndexError)  # of a reference on the samples

Ranges = Mapping[str, tuple[float, float]]


@attrs.frozen
class Improvement:
    """A form that replaced another one, and the bits that both lose on average, of `digits` that the dtype has."""

    form: str
    before: float
    after: float
    digits: int
    span: Span | None

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        return f"{place}{self.form}: loses {self.after:.1f} of {self.digits} bits instead of {self.before:.1f}"


@module_pass
def improve_accuracy(
    module: Module, low: float = LOW, high: float = HIGH, samples: int = SAMPLES, ranges: Ranges | None = None
) -> Module:
    """The module with forms that lose fewer digits where variables are in `ranges`, by their names, and else between
    `low` and `high`."""
    return improvements(module, low, high, samples, ranges)[0]


def improvements(
    module: Module, low: float = LOW, high: float = HIGH, samples: int = SAMPLES, ranges: Ranges | None = None
) -> tuple[Module, list[Improvement]]:
    """As `improve_accuracy`, with what was improved, in order. Raises ValueError for an empty range, and for that of a
    variable that the module does not have."""
    limits = {**(ranges or {}), "": (low, high)}
    for name, (least, greatest) in limits.items():
        if not (np.isfinite(least) and np.isfinite(greatest) and least <= greatest):
            raise ValueError(f"the range of {name or 'other variables'} is empty: {least} to {greatest}")
    known = _names(module) if ranges else set()
    for name in ranges or ():
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"there is a range for {name!r}, but no variable of this name{hint}")
    found: list[Improvement] = []

    def change(function: Function) -> Block:
        body = function.body
        for _ in range(_ROUNDS):
            improving = _AccuracyRewriting(limits, samples)
            made = improving.block(body)
            if not improving.found:
                break
            found.extend(improving.found)
            body = made
        return body

    return map_bodies(module, change), found


def _names(module: Module) -> set[str]:
    """The names of all variables."""
    found: set[str] = set()
    for function in module.functions.values():
        if isinstance(function, Function):
            found.update(v.name for v in function.parameters)
            for binding in walk(function.body):
                found.update(v.name for v in (*binding.targets, *bound_variables(binding.value)))
    return found


class _AccuracyRewriting:
    """One walk over a function. `found` are the improvements."""

    def __init__(self, ranges: Ranges, samples: int) -> None:
        self.ranges, self.samples = ranges, samples
        self.found: list[Improvement] = []
        self.random = np.random.default_rng(0)
        self.calls: dict[Var, OpCall] = {}
        self.runs: list[dict[Var, np.ndarray]] = [{} for _ in range(samples)]  # the variables' values in each run

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value: Expr = map_blocks(binding.value, self.block)
            made = [Binding(binding.targets, value)]
            if isinstance(value, OpCall):
                made = self._improve_call(binding.targets[0], value)
                for each in made:
                    if isinstance(each.value, OpCall):
                        self.calls[each.targets[0]] = each.value
                        self._run(each.targets[0], each.value)
            bindings += made
        return Block(tuple(bindings), block.terminator)

    # ---- forms

    def _improve_call(self, target: Var, call: OpCall) -> list[Binding]:
        """The call, or the bindings of the best form."""
        kept = [Binding((target,), call)]
        type_ = target.type
        if not isinstance(type_, TensorType) or not _is_float(type_):
            return kept
        best: tuple[float, float, str, list[Binding]] | None = None
        application = Application(call, lambda a: self.calls.get(a) if isinstance(a, Var) else None)
        for form in stable_forms_of(lookup(call.operator).name):
            try:
                value = application.rewrite_by(form)
            except _FAILURES:  # shapes that do not fit, or a dim that is not a number
                continue
            if value is None or value.type != type_:
                continue
            emitted = application.emitter.bindings
            bits = self._bits(target, call, value.atom, emitted)
            if bits is not None and bits[1] <= bits[0] - _GAIN and (best is None or bits[1] < best[1]):
                best = (*bits, form.text, [*emitted, Binding((target,), value.atom)])
        if best is None:
            return kept
        before, after, text, bindings = best
        self.found.append(Improvement(text, before, after, _digits(type_), call.span))
        last = bindings.pop()
        if bindings and bindings[-1].targets[0] is last.value:
            return [*bindings[:-1], Binding((target,), bindings[-1].value)]
        return [*bindings, last]

    def _bits(self, target: Var, call: OpCall, result: Atom, bindings: list[Binding]) -> tuple[float, float] | None:
        """The bits that a call and another form of it lose on average; None where they cannot be run."""
        cone = self._cone(call)
        before: list[np.ndarray] = []
        after: list[np.ndarray] = []
        count = 0
        for run in self.runs:
            original = self._call_value(call, run)
            exact = None if original is None else self._exact_value(call, cone, run)
            values = dict(run)
            if original is None or exact is None:
                return None
            for binding in bindings:
                assert isinstance(binding.value, OpCall)
                made = self._call_value(binding.value, values)
                if made is None:
                    return None
                values[binding.targets[0]] = made
            other = self._value(result, values)
            if other is None:
                return None
            before.append(_lost_bits(original, exact))
            after.append(_lost_bits(other, exact))
            count += exact.size
            if count >= self.samples:
                break
        lost, rest = np.concatenate(before), np.concatenate(after)
        known_ = ~(np.isnan(lost) | np.isnan(rest))
        return (float(lost[known_].mean()), float(rest[known_].mean())) if known_.any() else None

    def _cone(self, call: OpCall) -> set[Var]:
        """The variables nearest to a call that are computed exactly with it; those before them are as they are."""
        found: dict[Var, None] = {}
        pending = [call]
        for each in pending:
            for atom in each.arguments:
                if isinstance(atom, Var) and atom in self.calls and atom not in found and len(found) < _CONE:
                    found[atom] = None
                    pending.append(self.calls[atom])
        return set(found)

    # ---- values

    def _run(self, target: Var, call: OpCall) -> None:
        """Compute a call in all runs."""
        for run in self.runs:
            value = self._call_value(call, run)
            if value is None:
                return
            run[target] = value

    def _value(self, atom: Atom, run: dict[Var, np.ndarray]) -> np.ndarray | None:
        if isinstance(atom, Constant):
            return atom.value
        if not isinstance(atom, Var):
            return None
        if atom not in run and isinstance(atom.type, TensorType) and atom not in self.calls:
            try:
                shape = atom.type.dims
            except TypeError:  # a dim that is not a number
                return None
            run[atom] = np.asarray(self._random_sample(shape, atom.type, *self.ranges.get(atom.name, self.ranges[""])))
        return run.get(atom)

    def _random_sample(self, shape: tuple[int, ...], type_: TensorType, low: float, high: float) -> np.ndarray:
        """A sample: half of the elements are distributed evenly, the exponents of the others are."""
        assert isinstance(type_.base, BaseType)
        if type_.base.base_class is BaseClass.BOOL:
            return self.random.integers(0, 2, shape).astype(bool)
        even = self.random.uniform(low, high, shape)
        if not type_.base.is_float:
            return np.clip(even, 0, 9).astype(type_.dtype)
        largest = max(abs(low), abs(high))
        least = min(abs(low), abs(high)) if low * high > 0 else largest * 2.0**-30
        if largest == 0:
            return np.zeros(shape, type_.dtype)
        spread = np.exp(self.random.uniform(np.log(least), np.log(largest), shape))
        signs = np.where(self.random.uniform(size=shape) * (high - low) < max(0.0, -low) - max(0.0, -high), -1, 1)
        spread = np.clip(spread * signs, low, high)
        return np.where(self.random.integers(0, 2, shape) == 0, even, spread).astype(type_.dtype)

    def _call_value(self, call: OpCall, run: dict[Var, np.ndarray]) -> np.ndarray | None:
        """The value of a call in its dtype."""
        values = [self._value(a, run) for a in call.arguments]
        if any(v is None for v in values):
            return None
        try:
            with np.errstate(all="ignore"):
                found = lookup(call.operator).evaluate([v for v in values if v is not None], call.attributes)
            return found if isinstance(found, np.ndarray) else None
        except _FAILURES:
            return None

    def _exact_value(self, call: OpCall, cone: set[Var], run: dict[Var, np.ndarray]) -> np.ndarray | None:
        """The value of a call as real numbers, with those of the variables in its cone: of more and more digits, until
        these make no difference. References that take no such numbers are run on the widest float."""
        last: np.ndarray | None = None
        for precision in _DIGITS:
            with digits(precision):
                found = self._real_value(call, cone, run, exact_array)
                if found is None or found.dtype != object:
                    break
                if last is not None and _agree(found, last):
                    return found
            last = found
        if last is not None:
            return last
        found = self._real_value(call, cone, run, lambda array: array.astype(np.longdouble))
        return exact_array(found) if found is not None and found.dtype == np.longdouble else None

    def _real_value(
        self, call: OpCall, cone: set[Var], run: dict[Var, np.ndarray], real: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray | None:
        """The value of a call where `real` makes floats into other numbers."""
        known: dict[Var, np.ndarray] = {}

        def value(atom: Atom) -> np.ndarray | None:
            if isinstance(atom, Var) and atom in cone:
                if atom not in known:
                    made = exact_call(self.calls[atom])
                    if made is None:
                        return None
                    known[atom] = made
                return known[atom]
            found = self._value(atom, run)
            return real(found) if found is not None and found.dtype.kind == "f" else found

        def exact_call(inner: OpCall) -> np.ndarray | None:
            values = [value(a) for a in inner.arguments]
            operator = lookup(inner.operator)
            if any(v is None for v in values):
                return None
            try:
                with np.errstate(all="ignore"):
                    operands = (tuple(values),) if operator.variadic else tuple(values)
                    return np.asarray(operator.reference(*operands, **inner.attributes))
            except _FAILURES:
                return None

        return exact_call(call)


def _agree(found: np.ndarray, last: np.ndarray) -> bool:
    """True if the numbers are equal in all digits of a float64, and ten bits more."""
    pairs = zip(found.reshape(-1), last.reshape(-1), strict=True)
    return all(not f.value.is_finite() or abs(f.value - g.value) <= abs(f.value) * _NEAR for f, g in pairs)


def _is_float(type_: TensorType) -> bool:
    return isinstance(type_.base, BaseType) and type_.base.name in ("float16", "float32", "float64")


def _digits(type_: TensorType) -> int:
    assert isinstance(type_.base, BaseType)
    return int(np.finfo(type_.base.name).nmant) + 1


def _lost_bits(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The bits that each element loses; NaN where the exact one is not a number of the dtype."""
    limits = np.finfo(found.dtype)
    lost = np.full(exact.size, np.nan)
    for i, (number, real) in enumerate(zip(found.reshape(-1), exact.reshape(-1), strict=True)):
        if not real.value.is_finite() or abs(real) > float(limits.max):
            continue
        lost[i] = limits.nmant + 1
        if np.isfinite(number):
            with np.errstate(all="ignore"), digits(_DIGITS[1]):
                distance = np.spacing(np.abs(np.asarray(float(real)).astype(found.dtype)))
                if np.isfinite(distance):
                    lost[i] = min(np.log2(1 + float(abs(real - number) / distance)), lost[i])
    return lost
