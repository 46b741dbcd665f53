"""Calls of compiled programs: what arrays and numbers they take without help, and whose memory results are."""

import copy
import gc
import pickle
import threading
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from agreement import assert_modes_agree

from relay import Array, from_source, relay
from relay.calling.dlpack import array_from_dlpack
from relay.errors import CompileError, FrontendError, TypeCheckError, TypeMismatch


@relay
def scaled(x, a):
    return x * a + x


@relay
def increment(x):
    return x + 1.0


def assert_calls_agree(function: Any, *arguments: Any) -> None:
    """The first call, and further ones, which take the short way."""
    assert_modes_agree(function, *arguments, calls=3, rtol=0.0)


def test_arguments_of_other_shapes_and_dtypes_after_one_another() -> None:
    for _ in range(2):
        assert_calls_agree(increment, np.ones(3, np.float32))
        assert_calls_agree(increment, np.ones(4, np.float32))
        assert_calls_agree(increment, np.ones((3, 1), np.float32))
        assert_calls_agree(increment, np.ones(3, np.float64))
        assert_calls_agree(increment, np.float32(2))
        assert_calls_agree(increment, np.array(2.0, np.float32))
        assert_calls_agree(increment, np.ones((0, 3), np.float32))
        assert_calls_agree(increment, 2.5)


def test_memory_order() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert_calls_agree(increment, x)
    assert_calls_agree(increment, np.asfortranarray(x))
    assert_calls_agree(increment, x[:, ::-1])
    assert_calls_agree(increment, x[::2])
    assert_calls_agree(increment, x.T)
    assert_calls_agree(increment, x.astype(">f4"))
    read_only = x.copy()
    read_only.flags.writeable = False
    assert_calls_agree(increment, read_only)
    memory = np.zeros(4 * 24 + 1, np.uint8)
    unaligned = memory[1:].view(np.float32).reshape(4, 6)
    unaligned[:] = x
    assert_calls_agree(increment, unaligned)
    assert x[1, 1] == 7


def test_numbers() -> None:
    for a in (2.0, 3, -1, 2.5):
        assert_calls_agree(scaled, np.ones(3, np.float32), a)
        assert_calls_agree(scaled, a, 2)
    assert_calls_agree(scaled, np.ones(3, np.int64), 7)
    with pytest.raises(relay.TypeMismatch, match="is out of range for float32"):
        increment(1e300)
    assert_calls_agree(scaled, np.ones(3, np.float64), 2**24 + 1)
    assert np.isinf(float(increment(float("inf")))) and np.isnan(float(increment(float("nan"))))


class Pair(NamedTuple):
    left: Any
    right: Any


@relay
def sums(p, rest):
    return (p.left + rest["a"], {"b": rest["c"][0] * p.right})


def test_structures() -> None:
    x, y = np.ones(2, np.float32), np.arange(2, dtype=np.float32)
    for left, right in ((x, y), (y, x), (increment(x), 3.0), (2.0, y)):
        for _ in range(3):
            first, second = sums(Pair(left, right), {"a": y, "c": [x, 1.0]})
            np.testing.assert_array_equal(first, np.asarray(left) + y)
            np.testing.assert_array_equal(second["b"], x * np.asarray(right))


def test_a_result_keeps_its_memory() -> None:
    x = np.ones(100_000, np.float32)
    held = [increment(x) for _ in range(5)]
    view = increment(x).numpy()[10:20]
    exported = np.from_dlpack(increment(x))
    for _ in range(5):
        increment(2 * x)
    for result in held:
        assert np.all(result.numpy() == 2)
    assert np.all(view == 2) and np.all(exported == 2)


def test_a_result_as_the_next_argument() -> None:
    x: Any = np.zeros(100_000, np.float32)
    for _ in range(7):
        x = increment(x)
    assert isinstance(x, Array) and np.all(x.numpy() == 7)


def test_memory_of_results_is_used_again() -> None:
    x = np.ones(1_000_000, np.float32)
    addresses = {increment(x).numpy().ctypes.data for _ in range(6)}
    assert len(addresses) == 1


def test_calls_from_several_threads() -> None:
    arguments = [np.full(50_000, k, np.float32) for k in range(4)]
    increment(arguments[0])
    wrong: list[int] = []

    def call(k: int) -> None:
        for _ in range(200):
            if not np.all(increment(arguments[k]).numpy() == k + 1) or float(scaled(float(k), 2.0)) != 3 * k:
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@relay
def with_gaps(params, x):
    y = x * params["weight"]
    if params["bias"] is not None:
        y = y + params["bias"]
    for scale in params["scales"]:
        if scale is not None:
            y = y * scale
    return relay.sum(y)


def test_none_in_structures_chooses_the_program() -> None:
    two, x = np.float32(2), np.ones(3, np.float32)
    for _ in range(3):  # compiled, remembered
        assert float(with_gaps({"weight": two, "bias": None, "scales": (None, two)}, x)) == 12
        assert float(with_gaps({"weight": two, "bias": two, "scales": (two, None)}, x)) == 24
        assert float(with_gaps.interpret({"weight": two, "bias": None, "scales": (None, None)}, x)) == 6
    gradient = relay.grad(with_gaps, wrt=0)({"weight": two, "bias": None, "scales": (None, two)}, x)
    assert gradient == {"weight": 6, "bias": None, "scales": (None, 6)}


def test_what_a_structure_cannot_hold_is_named_by_its_place() -> None:
    with pytest.raises(TypeMismatch, match=r"argument v.value of unchanged is 'relu', but a reference may contain"):
        unchanged(relay.ref("relu"))
    with pytest.raises(TypeMismatch, match=r"argument params\['bias'\] of with_gaps is a Python object"):
        with_gaps({"weight": 1.0, "bias": object(), "scales": ()}, np.ones(3, np.float32))


@relay
def unchanged(v):
    return v


def test_an_empty_dict_is_no_dict_of_other_keys() -> None:
    for _ in range(2):  # compiled, remembered
        assert unchanged({}) == {}
        assert unchanged({"a": None}) == {"a": None}
        assert float(unchanged({"a": 2.0})["a"]) == 2.0
        assert float(unchanged({1: 2.0})[1]) == 2.0
        with pytest.raises(FrontendError, match=r"the keys of a dict in a program are .*, found 1\.5"):
            unchanged({1.5: 2.0})


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(TypeMismatch, match="masked array, whose mask would be lost"):
        unchanged(np.ma.masked_array([1.0, 2.0], mask=[True, False]))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_an_np_matrix_is_refused() -> None:
    """Its `*` is the product of matrices in Python, and would be that of elements."""
    for call in (unchanged, unchanged.interpret):
        with pytest.raises(TypeMismatch, match=r"is an np\.matrix") as caught:
            call(np.matrix([[1.0]]))
        assert "np.asarray(x)" in str(caught.value.help)


def test_arrays_of_other_subclasses_are_arrays() -> None:
    class Named(np.ndarray):
        __hash__ = None  # type: ignore[assignment]

    named = np.arange(3.0).view(Named)
    for _ in range(2):  # also where a program is there already
        assert unchanged(named).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("given", ["many", "0", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_an_error(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NUM_THREADS", given)

    @relay
    def increment(x):
        return x + 1.0

    with pytest.raises(CompileError, match=f"RELAY_NUM_THREADS is not a number: '{given}'"):
        increment(1.0)
    monkeypatch.setenv("RELAY_NUM_THREADS", " ")
    assert float(increment(1.0)) == 2.0


class Exporting:
    """Another framework's tensor: it has DLPack's methods and no others."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@relay
def with_defaults(x, y=2.0, *, z=1.0):
    return x * y + z


@relay(static_argnames="power")
def raised(x, power):
    return x**power


@relay
def twice(f, x):
    return f(f(x))


@relay
def add_one(x):
    return x + 1.0


@relay
def double(x):
    return x * 2.0


def test_calls_like_earlier_ones_describe_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the form of a call, the second one goes to the same program at once."""
    x, y = np.float32([1, 2]), np.float32([3, 4])
    calls = [
        (lambda: with_defaults(x, y=y), x * y + 1),
        (lambda: with_defaults(y=y, x=x), x * y + 1),
        (lambda: with_defaults(x, z=y), x * 2 + y),
        (lambda: with_defaults(x), x * 2 + 1),
        (lambda: with_defaults(x, y, z=x), x * y + x),
        (lambda: with_defaults(x, 3.0), x * 3 + 1),
        (lambda: raised(x, 2), x**2),
        (lambda: raised(x, power=3), x**3),
        (lambda: raised(power=2, x=y), y**2),
        (lambda: twice(add_one, x), x + 2),
        (lambda: twice(double, x), x * 4),
        (lambda: twice(f=double, x=y), y * 4),
        (lambda: add_one(Exporting(x)), x + 1),
        (lambda: with_defaults(Exporting(x), 3.0), x * 3 + 1),
        (lambda: add_one(x), x + 1),
    ]
    for _ in range(2):
        for call, expected in calls:
            np.testing.assert_allclose(call(), expected)

    def compiled(*_: object) -> None:
        raise AssertionError("the arguments were described again")

    monkeypatch.setattr("relay.api.function.RelayFunction._compile_call", compiled)
    for call, expected in calls:
        np.testing.assert_allclose(call(), expected)


def test_keywords_that_do_not_fit_are_refused_also_later() -> None:
    x = np.float32([1, 2])
    for _ in range(2):
        np.testing.assert_allclose(with_defaults(x, y=3.0), x * 3 + 1)
        with pytest.raises(TypeCheckError, match="two values for 'x'"):
            with_defaults(x, x=x)
        with pytest.raises(TypeCheckError, match="no parameter 'w'"):
            with_defaults(x, w=x)
        with pytest.raises(TypeCheckError, match="needs a value for 'x'"):
            with_defaults(y=x)


def test_functions_that_are_arguments_stay_themselves() -> None:
    """A function that takes the place in memory of one that is gone is another one."""
    x = np.float32([1, 2])
    for factor in range(1, 5):
        made = from_source(f"def f(x):\n    return x * {factor}.0\n")
        np.testing.assert_allclose(twice(made, x), x * factor**2)
        del made
        gc.collect()


@relay
def pickled(x):
    return x + 1.0


def test_functions_are_pickled_by_their_names_and_copied_as_themselves() -> None:
    for _ in range(2):
        assert pickle.loads(pickle.dumps(pickled)) is pickled
        assert copy.deepcopy([pickled])[0] is copy.copy(pickled) is pickled
        assert float(pickled(1.0)) == 2.0
    slope = relay.grad(pickled)
    assert copy.deepcopy(slope) is slope
    with pytest.raises(TypeError, match="<relay function pickled> has no name in a module"):
        pickle.dumps(slope)


@pytest.mark.parametrize(
    ("value", "help"),
    [
        ([1.0, None], "make an array of it, np.array(xs); two lists are joined by `+`"),
        (range(3), r"pass an array: np.array(x)"),
        (memoryview(b"abc"), r"pass an array: np.array(x)"),
        ({1}, r"pass np.array(list(x))"),
        ({"a"}, r"pass tuple(x)"),
        (np.zeros(2, np.longdouble), r"convert it: x.astype(np.float64)"),
    ],
)
def test_what_is_nearly_an_array_is_told_how_to_become_one(value: object, help: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        pickled(value)
    assert help in str(caught.value)


class Foreign:
    """An array of another library: it speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray, error: Exception | None = None) -> None:
        self.array, self.error = np.asarray(array), error

    def __dlpack__(self, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        return Array(self.array).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return Array(self.array).__dlpack_device__()


@pytest.mark.parametrize("dtype", [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)], ids=str)
def test_arrays_of_other_libraries_of_all_dtypes_and_strides(dtype: np.dtype[Any]) -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for view in (x, x.T, x[::-1, :, ::2], x[:, 1:, 1:], x[0, 0, 3], x[:0]):
        for _ in range(2):
            found = pickled(Foreign(view))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, view + dtype.type(1))
    shared = array_from_dlpack(Foreign(x))
    x[1, 2, 3] = 50
    assert shared[1, 2, 3] == 50 and shared.ctypes.data == x.ctypes.data


def test_arrays_of_other_libraries_that_cannot_be_read() -> None:
    hidden = Foreign(np.ones(2), BufferError("Can't export tensors that require gradient"))
    for run in (pickled, pickled.interpret, pickled.compile(np.ones(2))):
        with pytest.raises(
            TypeMismatch, match="a Foreign that cannot be read: Can't export tensors that require"
        ) as caught:
            run(hidden)
        assert caught.value.help == "pass x.detach()"
    with pytest.raises(TypeMismatch, match=r"argument x\[0\] of pickled is a Foreign that cannot be read"):
        pickled([hidden])
