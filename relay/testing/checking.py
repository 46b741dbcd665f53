"""Random arguments for a function: what the interpreter gives, what compiled programs give, and their gradients.

    arguments of the types of the parameters
    interpreted  ==  compiled at every level
    gradients, interpreted  ==  compiled at every level  ==  finite differences, a little away from the arguments

Finite differences are taken a little away, since the numbers that are drawn are those at which functions have kinks and
ties: 0, and the same number twice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeAlias

import attrs
import numpy as np

from relay.api import tree
from relay.api.differentiation import grad
from relay.api.function import RelayFunction
from relay.api.gradient_check import wrong_gradient
from relay.calling.array import Array
from relay.compilation.stages import DEFAULT_LEVEL
from relay.errors import DifferentiationError, ExecutionError, FrontendError, TypeCheckError
from relay.testing.agreement import assert_agree, at_level, leaves
from relay.testing.arguments import argument_sources, arguments_strategy, call_text, without_an_index

_EXTRA = "relay.testing.check needs hypothesis: pip install 'relay-lang[testing]'"


class Disagreement(AssertionError):
    """Raised by `check`: two ways to run a function differ. `arguments` are the smallest ones that show it, `call`
    is the call with them as text."""

    def __init__(self, message: str, arguments: tuple[Any, ...], call: str) -> None:
        super().__init__(message)
        self.arguments = arguments
        self.call = call


def check(
    f: Any,
    *types: Any,
    runs: int = 20,
    seed: int = 0,
    levels: Iterable[int] = (0, DEFAULT_LEVEL),
    gradient: bool | None = None,
    differences: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> int:
    """Call a decorated function with random arguments, and compare the ways to run it.

    The interpreter's result is compared with that of the compiled function at each of the levels, as by
    `assert_modes_agree`; so are the gradients of results that are an array of floats, or a tuple or list of them, also
    with finite differences. If the interpreter raises an ExecutionError, compiled code must raise one, too.

    Args:
        types: of the arguments, `Tensor[Float64, (n, 3)]`, with variables for sizes; or strategies of Hypothesis, for
            anything else; or arguments, which stand for themselves. Default: the types of the parameters that have no
            default, as annotated or as inferred.
        runs: how many arguments are tried.
        seed: other arguments for another one.
        levels: of optimization.
        gradient: True if there has to be one, False if it is not compared.
        differences: whether gradients are compared with finite differences, which gradients of your own need not be.
        rtol, atol: by how much results may differ, as for `assert_modes_agree`.

    Returns how many arguments f took. Raises Disagreement, with the smallest arguments that show it; TypeCheckError
    where no arguments can be drawn, or f takes none of them; ModuleNotFoundError without Hypothesis.
    """
    try:
        import hypothesis  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "hypothesis":
            raise
        raise ModuleNotFoundError(_EXTRA, name="hypothesis") from None
    if not isinstance(f, RelayFunction):
        raise FrontendError(f"check takes a decorated function, found {type(f).__name__}")
    comparison = _Comparison(f, tuple(levels), gradient, rtol, atol)

    sources, allowed = argument_sources(f, types)
    strategy = arguments_strategy(sources, allowed)

    def require_none(difference: _Comparing) -> None:
        """Raise Disagreement with the smallest arguments that have a difference of this kind."""
        smallest = _smallest_arguments(difference, strategy, runs, seed)
        if smallest is None:
            return

        def differs_too(arguments: tuple[Any, ...]) -> bool:
            try:
                return difference(arguments) is not None
            except _NotTaken:
                return False

        while (cut := next(filter(differs_too, without_an_index(sources, smallest)), None)) is not None:
            smallest = cut
        found = difference(smallest)
        assert found is not None
        call = call_text(f.__name__, found.arguments)
        raise Disagreement(f"{call}\n{found.what}\n{found.detail}", found.arguments, call)

    require_none(comparison.of_values)
    if (taken := comparison.taken) == 0:
        raise _none_taken(f, comparison.refusal)
    if gradient is not False:
        require_none(comparison.of_gradients)
    if differences and comparison.gradient is not False:
        require_none(comparison.with_finite_differences)
    return taken


def _smallest_arguments(difference: _Comparing, strategy: Any, runs: int, seed: int) -> tuple[Any, ...] | None:
    """The smallest arguments among `runs` random ones that have a difference; None if none has."""
    import hypothesis

    def differs(arguments: tuple[Any, ...]) -> bool:
        try:
            return difference(arguments) is not None
        except _NotTaken:
            hypothesis.reject()

    phases = (hypothesis.Phase.generate, hypothesis.Phase.shrink)
    settings = hypothesis.settings(max_examples=runs, deadline=None, database=None, phases=phases)
    try:
        found: tuple[Any, ...] = hypothesis.find(strategy, differs, settings=settings, random=Random(seed))
    except (hypothesis.errors.NoSuchExample, hypothesis.errors.Unsatisfiable):
        return None
    return found


def _none_taken(f: RelayFunction, refusal: TypeCheckError | None) -> TypeCheckError:
    return TypeCheckError(
        f"check found no arguments that {f.__name__} takes",
        f._function.span,
        notes=() if refusal is None else (f"the last ones were refused: {refusal.message}",),
        help="give their types: relay.testing.check(f, Tensor[Float64, (n, 3)])",
    )


class _NotTaken(Exception):
    """The function has no type for these arguments."""


@attrs.frozen
class _Difference:
    what: str
    detail: str
    arguments: tuple[Any, ...]


_Comparing: TypeAlias = Callable[[tuple[Any, ...]], _Difference | None]


@attrs.define
class _Comparison:
    """The comparison of the ways to run f. `taken` counts the arguments that f took; `refusal` is why it did not take
    the last ones."""

    f: RelayFunction
    levels: tuple[int, ...]
    gradient: bool | None
    rtol: float | None
    atol: float | None
    taken: int = 0
    refusal: TypeCheckError | None = None
    _functions: dict[tuple[int | None, int | None], RelayFunction] = attrs.field(factory=dict)

    def of_values(self, arguments: tuple[Any, ...]) -> _Difference | None:
        """The difference of compiled results from the interpreter's; None if there is none. Raises _NotTaken."""
        value = self._interpreted_result(arguments)
        self.taken += 1
        return self._levels_differ(None, arguments, (), value)

    def of_gradients(self, arguments: tuple[Any, ...]) -> _Difference | None:
        """The difference of compiled gradients from the interpreter's; None if there is none, or no gradient. Raises
        _NotTaken."""
        value = self._interpreted_result(arguments)
        if self.gradient is False or not any(map(_is_float, leaves(arguments))):
            return None
        try:
            for output, seed in _seeds(value):
                interpreted = _outcome(self._function(output, derived=True).interpret, (*arguments, seed))
                found = self._levels_differ(output, arguments, (seed,), interpreted)
                if found is not None:
                    return found
        except DifferentiationError:
            if self.gradient:
                raise
            self.gradient = False
        return None

    def with_finite_differences(self, arguments: tuple[Any, ...]) -> _Difference | None:
        """The difference of gradients from finite differences, near these arguments, where the function and its
        gradient are finite; None if there is none. Raises _NotTaken."""
        moved = _perturbed_arguments(arguments)
        seeds = _seeds(self._interpreted_result(moved))
        if not seeds or not any(map(_is_float, leaves(arguments))):
            return None
        function = self._function(None)
        try:
            value = function(*copy.deepcopy(moved))
            gradients = [self._function(output, derived=True)(*copy.deepcopy(moved), seed) for output, seed in seeds]
        except ExecutionError:
            return None  # what f is defined for ends near the arguments
        if not _is_finite((value, gradients)):
            return None
        wrong = wrong_gradient(function, *moved)
        return None if wrong is None else _Difference("the gradient is wrong", wrong.message, moved)

    def _interpreted_result(self, arguments: tuple[Any, ...]) -> Any:
        """The interpreter's result, or its ExecutionError. Raises _NotTaken."""
        try:
            return _outcome(self._function(None).interpret, arguments)
        except TypeCheckError as error:
            self.refusal = error
            raise _NotTaken from error

    def _levels_differ(
        self, output: int | None, arguments: tuple[Any, ...], seeds: tuple[Any, ...], reference: Any
    ) -> _Difference | None:
        """Compare the interpreter's result with those of the compiled function, or of its derivative."""
        name = "the gradient " if seeds else ""
        for level in self.levels:
            what = f"{name}compiled at level {level} is not as interpreted"
            try:
                found = _outcome(self._function(output, level, bool(seeds)), (*arguments, *seeds))
            except Exception as error:  # of any kind: the interpreter has run it
                return _Difference(what, f"{type(error).__name__}: {error}", arguments)
            if isinstance(found, ExecutionError) or isinstance(reference, ExecutionError):
                if type(found) is not type(reference):
                    return _Difference(
                        what, f"compiled: {_outcome_text(found)}\ninterpreted: {_outcome_text(reference)}", arguments
                    )
                continue
            try:
                assert_agree(found, reference, self.rtol, self.atol)
            except AssertionError as error:
                detail = str(error).strip().removeprefix(": ")
                return _Difference(what, f"{detail}\ncompiled: {found}\ninterpreted: {reference}", arguments)
        return None

    def _function(self, output: int | None, level: int | None = None, derived: bool = False) -> RelayFunction:
        """f, or its derivative, at a level; the same one each time, so that it is compiled once."""
        key = (output if derived else -1, level)
        if key not in self._functions:
            plain = RelayFunction(self.f.__relay__, attrs.evolve(self.f._options, check=None))
            made = grad(plain, output=output, seedable=True) if derived else plain
            self._functions[key] = made if level is None else at_level(made, level)
        return self._functions[key]


def _outcome(run: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a call, or the error that stopped the program. The arguments are copied, as the program may
    write."""
    try:
        return run(*copy.deepcopy(arguments))
    except ExecutionError as error:
        return error


def _outcome_text(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome.message}" if isinstance(outcome, ExecutionError) else str(outcome)


def _is_float(leaf: Any) -> bool:
    if not isinstance(leaf, np.ndarray | np.generic | Array | float):
        return False
    dtype = np.asarray(leaf).dtype
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _is_finite(value: Any) -> bool:
    return all(np.all(np.isfinite(np.asarray(leaf, np.float64))) for leaf in leaves(value) if _is_float(leaf))


def _seeds(value: Any) -> list[tuple[int | None, np.ndarray]]:
    """Cotangents for the results that are an array of floats: the component, None for a bare one, and numbers that are
    near 1 and differ."""
    parts = list(enumerate(value)) if isinstance(value, tuple | list) else [(None, value)]
    found: list[tuple[int | None, np.ndarray]] = []
    for position, part in parts:
        if _is_float(part):
            array = np.asarray(part)
            found.append((position, (1.5 + np.cos(np.arange(array.size)) / 2).reshape(array.shape).astype(array.dtype)))
    return found


def _perturbed_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with all their floats moved a little, and each by another distance."""
    count = 0

    def move(leaf: Any) -> Any:
        nonlocal count
        if not _is_float(leaf):
            return leaf
        array = np.asarray(leaf)
        distances = 0.02 + 0.05 * np.sin(np.arange(count + 1, count + 1 + array.size)) ** 2
        count += array.size
        moved = np.round(array.astype(np.float64) + distances.reshape(array.shape), 4).astype(array.dtype)
        return moved if array.ndim else moved[()]

    moved = tree.map(move, arguments)
    assert isinstance(moved, tuple)
    return moved
