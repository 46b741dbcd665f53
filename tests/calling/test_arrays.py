"""Results in Python: `Array` does what NumPy's arrays do, case by case, and never changes."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import statistics
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relay import Array, ExecutionError, relay

_VALUES = (
    np.array([3.0, -1.5, 2.0]),
    np.array([[1.5, 2.0], [-0.5, 4.0]], np.float32),
    np.array([4, 1, 3], np.int32),
    np.array([True, False]),
    np.array(2.5),
    np.array(np.float32(-1.25)),
    np.array(3),
    np.array(True),
    np.zeros((0, 2)),
    np.array([7.0]),
)

_BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod),
    *(operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge),
)
_IN_PLACE = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod),
    *(operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
)
_OTHERS = (2, 1.5, True, None, "text", 1j, np.float32(2), np.int8(3), np.array([1, 2, 3]), np.ones((2, 2)), [1, 2, 3])


def _plain(value: Any) -> Any:
    if isinstance(value, Array):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    return value


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, (tuple, list)):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(expected, (np.ndarray, np.generic)):
        expected = np.asarray(expected)
        return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    return type(found) is type(expected) and bool(found == expected)


def _compare(case: Callable[[Any], Any], value: np.ndarray, expected_of: Callable[[Any], Any] | None = None) -> None:
    """What a case makes of an Array is what it makes of the NumPy array, or the same class of error."""
    with np.errstate(all="ignore"):
        try:
            expected = (expected_of or case)(value.copy())
        except Exception as error:
            with pytest.raises(next(t for t in type(error).__mro__ if t.__module__ == "builtins")):
                case(Array(value))
            return
        found = case(Array(value))
    assert _same(_plain(found), expected), (found, expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", _BINARY, ids=lambda f: f.__name__)
def test_operators(function: Callable[[Any, Any], Any]) -> None:
    for value in _VALUES:
        for other in (*_OTHERS, value):
            _compare(lambda a, o=other: function(a, o), value)  # type: ignore[misc]
            _compare(lambda a, o=other: function(o, a), value)  # type: ignore[misc]
        _compare(lambda a: function(a, a), value)
        _compare(lambda a: function(a, np.flip(np.asarray(a))), value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", _IN_PLACE, ids=lambda f: f.__name__)
def test_in_place_operators_make_a_new_array(function: Callable[[Any, Any], Any]) -> None:
    plain = getattr(operator, function.__name__[1:] + ("_" if function.__name__ in ("iand", "ior") else ""))
    for value in _VALUES:
        before = value.copy()
        for other in (*_OTHERS, value):
            _compare(lambda a, o=other: function(a, o), value, lambda a, o=other: plain(a, o))  # type: ignore[misc]
        assert np.array_equal(value, before)
    for target in (np.ones(3), np.full(3, 2.0)):
        changed = target
        expected = _outcome(function, target.copy(), np.array([3.0, 1.0, 2.0]))
        found = _outcome(function, changed, Array(np.array([3.0, 1.0, 2.0])))
        assert type(found) is type(expected) and (isinstance(expected, Exception) or found is changed)


def _outcome(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    try:
        return function(left, right)
    except TypeError as error:  # np.ones(3) & 1.0
        return error
    except ValueError as error:  # np.ones(3) @= np.ones(3)
        return error


_CASES: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "sum": sum,
    "max": max,
    "min": min,
    "sorted": sorted,
    "list": list,
    "tuple": tuple,
    "sum of two": lambda a: sum([a, a]),
    "max of two": lambda a: max([a, a + 1]),
    "mean of two": lambda a: statistics.mean([float(a), 2.0]),
    "len": len,
    "reversed": lambda a: list(reversed(a)),
    "in": lambda a: 2.0 in a,
    "not in": lambda a: 17 not in a,
    "bool": bool,
    "not": operator.not_,
    "index": operator.index,
    "range": lambda a: list(range(a)),
    "list index": lambda a: [1, 2, 3, 4][a],
    "complex": complex,
    "hash": hash,
    "pow modulo": lambda a: pow(a, 2, 5),
    "str": str,
    "format": lambda a: f"{a}",
    "format s": lambda a: f"{a!s:>40}",
    "format .3f": lambda a: f"{a:.3f}",
    "format d": lambda a: f"{a:d}",
    "percent": lambda a: "%.2f" % a,  # noqa: UP031
    "math.sqrt": lambda a: math.sqrt(a * a),
    "unpack": lambda a: (lambda x, *rest: rest)(*a),
    "slice": lambda a: a[1:],
    "step": lambda a: a[::-1],
    "first": lambda a: a[0],
    "ellipsis": lambda a: a[..., None],
    "mask": lambda a: a[a > 0],
    "mask in a tuple": lambda a: a[(a > 0,)],
    "fancy": lambda a: a[[0, 1]],
    "out of bounds": lambda a: a[100],
    "too many": lambda a: a[0, 0, 0, 0],
    "not an index": lambda a: a["x"],
    "delete": lambda a: a.nothing,
    "T": lambda a: a.T,
    "mT": lambda a: a.mT,
    "real": lambda a: a.real,
    "properties": lambda a: (a.shape, a.ndim, a.size, a.nbytes, a.itemsize, a.strides, a.dtype == np.dtype("int32")),
    "item": lambda a: a.item(),
    "item of": lambda a: a.item(1),
    "tolist": lambda a: a.tolist(),
    "tobytes": lambda a: a.tobytes(),
    "astype": lambda a: a.astype(np.float16),
    "astype of nothing": lambda a: a.astype("nothing"),
    "reductions": lambda a: (a.sum(), a.mean(axis=0), a.max(axis=-1), a.std(), a.prod(keepdims=True)),
    "any, all": lambda a: (a.any(), a.all()),
    "argmax": lambda a: (a.argmax(), a.argsort()),
    "cumsum": lambda a: a.cumsum(),
    "wrong axis": lambda a: a.sum(axis=5),
    "reshape": lambda a: a.reshape(-1, 1),
    "reshape of another size": lambda a: a.reshape(1000),
    "forms": lambda a: (a.ravel(), a.flatten(), a.squeeze(), a.transpose(), a.copy()),
    "clip": lambda a: a.clip(0, 2),
    "round of digits": lambda a: a.round(1),
    "dot": lambda a: a.dot(a),
    "dot of two ranks": lambda a: a.dot(np.ones(2)),
    "nonzero": lambda a: a.nonzero(),
    "asarray": np.asarray,
    "asarray dtype": lambda a: np.asarray(a, np.float16),
    "array of dtype without a copy": lambda a: np.array(a, np.float16, copy=False),
    "array without a copy": lambda a: np.array(a, copy=False),
    "array": np.array,
    "array of two": lambda a: np.array([a, a]),
    "add": lambda a: np.add(a, a),
    "add.reduce": lambda a: np.add.reduce(a),
    "add.accumulate": lambda a: np.add.accumulate(a),
    "multiply.outer": lambda a: np.multiply.outer(a, a),
    "where": lambda a: np.add(a, a, where=a > 0, out=np.zeros(a.shape)),
    "out": lambda a: np.add(a, 1, out=np.zeros(a.shape)),
    "modf": lambda a: np.modf(a),
    "sqrt": lambda a: np.sqrt(a),
    "isnan": lambda a: np.isnan(a),
    "concatenate": lambda a: np.concatenate([a, a]),
    "stack": lambda a: np.stack([a, a]),
    "np.sum": lambda a: np.sum(a),
    "np.mean": lambda a: np.mean(a, axis=0),
    "np.sort": lambda a: np.sort(a),
    "np.where": lambda a: np.where(a > 0, a, 0),
    "np.dot": lambda a: np.dot(a, a),
    "np.shape": lambda a: (np.shape(a), np.ndim(a), np.size(a)),
    "np.allclose": lambda a: np.allclose(a, a),
    "np.zeros_like": lambda a: np.zeros_like(a),
    "np.round": lambda a: np.round(a),
    "np.einsum": lambda a: np.einsum("i,i->", a, a),
    "np.linalg.norm": lambda a: np.linalg.norm(a),
    "from_dlpack": np.from_dlpack,
    "einsum of isinstance": lambda a: isinstance(a, (int, float)),
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "copy": copy.copy,
    "deepcopy": lambda a: copy.deepcopy([a, a])[1],
}

_NUMBERS = ("mean of two", "complex", "percent", "math.sqrt")  # of one element: ours are, NumPy's depend on its version


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", _CASES)
def test_protocol(name: str) -> None:
    for value in _VALUES:
        if value.shape != (1,) or name not in _NUMBERS:
            _compare(_CASES[name], value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", [float, int, round, math.floor, math.ceil, math.trunc, lambda a: round(a, 1)])
def test_numbers(function: Callable[[Any], Any]) -> None:
    """Results of rank 0 are as good as NumPy's scalars, and arrays of more elements no numbers."""
    for value in _VALUES:
        if value.ndim == 0 and value.dtype != bool:  # Python's bools are rounded, NumPy's are not
            _compare(function, value, lambda a: function(a[()] if function is not math.trunc else a.item()))
        elif value.size != 1:
            with pytest.raises(TypeError):
                function(Array(value))
    assert (float(Array(np.array([7.0]))), int(Array(np.array([[7]])))) == (7.0, 7)
    assert (round(Array(np.array(True))), math.trunc(Array(np.array(True)))) == (1, 1)


def test_other_libraries() -> None:
    class Framework:
        """A tensor of a library that NumPy's arrays leave operators to."""

        __array_priority__ = 1000

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array([1.0, 2.0, 3.0])

        def __add__(self, other: Any) -> str:
            return "its own"

        __radd__ = __add__

    class Refusing:
        __array_ufunc__ = None

        def __rmul__(self, other: Any) -> str:
            return "reflected"

    class Overriding:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> str:
            return f"{ufunc.__name__} of {[type(x).__name__ for x in inputs]}"

    class Exchanged:
        def __dlpack__(self, **options: Any) -> Any:
            return np.array([1.0, 2.0, 3.0]).__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    value = np.array([3.0, -1.5, 2.0])
    cases: list[Callable[[Any], Any]] = [
        lambda a: a + Framework(),
        lambda a: Framework() + a,
        lambda a: a * Framework(),
        lambda a: Framework() * a,
        lambda a: np.add(a, Framework()),
        lambda a: a * Refusing(),
        lambda a: Refusing() * a,
        lambda a: a + Refusing(),
        lambda a: np.add(a, Refusing()),
        lambda a: a + Exchanged(),
        lambda a: a + object(),
        lambda a: np.from_dlpack(a) + np.from_dlpack(Exchanged()),
    ]
    for case in cases:
        _compare(case, value)
    assert Array(value) + Overriding() == "add of ['ndarray', 'Overriding']"
    assert Overriding().__array_ufunc__(np.add, "__call__", Array(value)) == "add of ['Array']"


def test_an_array_never_changes() -> None:
    value = np.array([3.0, -1.5, 2.0])
    array = Array(value)
    with pytest.raises(TypeError, match=r"an Array never changes; change a copy, a\.numpy\(\)\.copy\(\)"):
        array[0] = 1.0
    with pytest.raises(TypeError, match="cannot write into an Array"):
        np.add(value, 1, out=array)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="cannot write into an Array"):
        np.add.at(array, [0], 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot write into an Array"):
        array.cumsum(out=array)
    with pytest.raises(AttributeError, match=r"'sort', since it never changes: np\.sort\(a\) is a sorted copy"):
        array.sort()
    for name in ("shape", "dtype", "T", "data"):
        with pytest.raises(AttributeError):
            setattr(array, name, None)
    changed = array
    changed += 1
    assert changed is not array and array.tolist() == [3.0, -1.5, 2.0] and changed.tolist() == [4.0, -0.5, 3.0]
    copied = copy.copy(array)
    copied.numpy()[0] = 9.0
    assert float(array[0]) == 3.0


def test_a_donated_array_says_so() -> None:
    array = Array(np.ones(3))
    array.donate("f")
    uses: list[Callable[[], Any]] = [
        lambda: array + 1,
        lambda: copy.copy(array),
        lambda: pickle.dumps(array),
        array.sum,
    ]
    for use in uses:
        with pytest.raises(ExecutionError, match="this array was donated to f"):
            use()


def test_bfloat16() -> None:
    array = Array(np.array(2.5, ml_dtypes.bfloat16))
    assert (f"{array:.2f}", round(array), math.floor(array), float(array)) == ("2.50", 2, 2, 2.5)
    assert round(array, 1).dtype == array.dtype == (array + array).dtype


def test_the_lines_of_a_training_loop() -> None:
    @relay
    def loss(x):  # type: ignore[no-untyped-def]
        return (x * x).sum()

    total, best, history = 0.0, math.inf, []
    for scale in (1.0, 2.0, 3.0):
        value = loss(np.full(3, scale))
        total += value
        best = min(best, value)
        history.append(value)
    assert (float(total), float(best)) == (42.0, 3.0)
    assert f"{total / 3:.2f} {best:8.3f} {history[-1]:g}" == "14.00    3.000 27"
    assert (float(sum(history)), float(max(history)), float(np.mean(history))) == (42.0, 27.0, 14.0)
    totals = np.zeros(2)
    totals += loss(np.ones(3))
    assert type(totals) is np.ndarray and totals.tolist() == [3.0, 3.0]
