"""Ranges whose bounds are the run's: as many rounds, and the numbers, that Python's have, up to the ends of a dtype."""

import itertools

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise
from matrix import everything

import relay as rl
from relay import relay

FEW = 5  # rounds that the programs go, of ranges that may have 2**64

PROGRAM = f"""
def numbers(a, b, x):
    forth = 0
    rounds = 0
    for i in range(a, b, STEP):
        forth += i * (rounds + 1)
        rounds += 1
        if rounds == {FEW}:
            break
    back = 0
    others = 0
    for i in reversed(range(a, b, STEP)):
        back += i * (others + 1)
        others += 1
        if others == {FEW}:
            break
    return forth, rounds, back, others, x in range(a, b, STEP)
"""


def wrapped(number: int, bits: int) -> int:
    """What a signed integer of so many bits makes of a number."""
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def expected(a: int, b: int, step: int, x: int, bits: int) -> tuple[int, ...]:
    """What Python says of the program."""

    def weighed(numbers: range) -> tuple[int, int]:
        found = list(itertools.islice(numbers, FEW))
        return wrapped(sum(i * (n + 1) for n, i in enumerate(found)), bits), len(found)

    whole = range(a, b, step)
    return *weighed(whole), *weighed(whole[::-1]), x in whole


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("power", [0, 1, 2, 30, 31])
@pytest.mark.parametrize("sign", [1, -1])
def test_ranges_of_the_run(bits: int, power: int, sign: int) -> None:
    largest = 2 ** (bits - 1) - 1
    step = sign * min(2**power * (3 if power == 2 else 1) << (bits - 32 if power > 2 else 0), largest)
    numbers = rl.from_source(PROGRAM.replace("STEP", str(step)), {"relay": relay})
    dtype = np.dtype(f"int{bits}").type
    ends = (-largest - 1, -largest, -3, 0, 1, 6, largest - 1, largest)
    for a, b in itertools.product(ends, ends):
        if len_of(range(a, b, step)) >= 2**63 and abs(step) > 1:
            continue  # nobody waits for so many: 2**63 - 1 stand for them
        want = expected(a, b, step, a + 12, bits)
        given = dtype(a), dtype(b), dtype(wrapped(a + 12, bits))
        want = (*want[:4], wrapped(a + 12, bits) in range(a, b, step))
        found = tuple(int(part) for part in numbers(*given))
        assert found == want, (a, b, step)
    assert tuple(int(part) for part in numbers.interpret(*given)) == want


def len_of(numbers: range) -> int:
    """`len` without a limit."""
    return max(0, -((numbers.start - numbers.stop) // numbers.step))


@pytest.mark.parametrize("bits", [32, 64])
def test_steps_of_the_run(bits: int) -> None:
    @relay
    def rounds(a, b, step):
        count = 0
        for _ in range(a, b, step):
            count += 1
        return count, len(range(a, b, step)), [i + 0 for i in range(a, b, step)]

    dtype, most = np.dtype(f"int{bits}").type, 2 ** (bits - 1)
    for a, b, step in (
        (-most, most - 1, most // 2),
        (most - 1, -most, -(most // 2)),
        (-most, most - 1, -1),
        (most - 1, -most, -most),
        (-most, 7 - most, 2),
        (5, 5, 3),
    ):
        want = range(a, b, step)
        count, length, numbers = assert_modes_agree(rounds, dtype(a), dtype(b), dtype(step))
        assert int(count) == int(length) == len(want)
        assert [int(i) for i in numbers] == list(want)


def test_ranges_that_are_known() -> None:
    @relay
    def rounds():
        count, others, fifth = 0, 0, 0
        for _ in range(-2000000000, 2000000000, 1000000000):
            count += 1
        for _ in range(-(2**63), 2**63 - 1, 2**62):
            others += 1
        for i in range(5_000_000_000):
            fifth = i
            if i == 4:
                break
        return count, others, fifth, len(range(-(2**31), 2**31))

    assert_modes_agree(rounds, expected=[4, 4, 4, 2**32])


@pytest.mark.skipif(not everything(), reason="it takes seconds")
def test_more_rounds_than_an_int32_says_are_run() -> None:
    @relay
    def rounds(a, b):
        count = np.int64(0)
        for _ in range(a, b):
            count += 1
        return count

    assert int(rounds(np.int32(-(2**31)), np.int32(2**31 - 1))) == 2**32 - 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64"])
def test_bounds_of_every_integer(dtype: str) -> None:
    @relay
    def total(n):
        found = 0
        for i in range(n):
            found += i
        return found

    assert int(total(np.dtype(dtype).type(5))) == int(total.interpret(np.dtype(dtype).type(5))) == 10


def test_ranges_backwards_with_steps_of_the_run() -> None:
    @relay
    def backwards(a, b, step):
        total, rounds, others = 0, 0, 0
        for i in reversed(range(a, b, step)):
            total += i * (rounds + 1)
            rounds += 1
        for i in reversed(reversed(range(a, b, step))):
            others = others * 3 + i
        return total, rounds, others

    for a, b, step in itertools.product((1, 9, 5), (1, 9, 4), (1, 2, 3, -1, -2, -5)):
        numbers = range(a, b, step)
        others = 0
        for i in numbers:
            others = others * 3 + i
        want = sum(i * (n + 1) for n, i in enumerate(reversed(numbers))), len(numbers), others
        assert_modes_agree(backwards, a, b, step, expected=want)

    @relay
    def last(a, b, step):
        for i in reversed(range(a, b, step)):
            return i
        return np.int64(0)

    most = 2**63
    for a, b, step in ((-most, most - 1, 1), (most - 1, -most, -1), (-most, most - 1, 2**62), (-most, most - 1, 3)):
        bounds = np.int64(a), np.int64(b), np.int64(step)
        assert int(last(*bounds)) == int(last.interpret(*bounds)) == range(a, b, step)[-1]


def test_bounds_of_uint64() -> None:
    @relay
    def third(n):
        found = 0
        for i in range(n):
            found = i
            if i == 3:
                break
        return found

    assert (
        int(assert_modes_agree(third, np.uint64(2))) == 1 and int(assert_modes_agree(third, np.uint64(2**63 - 1))) == 3
    )
    assert_modes_raise(
        third, np.uint64(2**63), error=rl.ExecutionError, match=r"a bound of range must be less than 2\*\*63"
    )


def test_negative_bounds_that_are_known_with_steps_of_the_run() -> None:
    @relay
    def rounds(step):
        found = [i + 0 for i in range(10**12, -10, step)]
        return len(found), found[-1]

    assert_modes_agree(rounds, np.int64(-(10**11)), expected=(11, 0))


@pytest.mark.parametrize("dtype", [int, np.int32, np.int64, np.int8])
def test_aranges_of_the_run(dtype: type) -> None:
    @relay
    def numbers(a, n):
        less = relay.arange(a, n, dtype=relay.Float64)
        return np.arange(n), np.arange(a, n), np.arange(a, 10, 2), np.arange(3, n, -2), less, np.arange(a, n) * 0.5

    for a, n in itertools.product((-3, 0, 4), (-5, 0, 7)):
        want = np.arange(n), np.arange(a, n), np.arange(a, 10, 2), np.arange(3, n, -2)
        found = assert_modes_agree(numbers, dtype(a), dtype(n))
        for one, other in zip(found, (*want, want[1], want[1] * 0.5), strict=True):
            assert one.tolist() == other.tolist()
        assert found[1].dtype == np.int32 and found[5].dtype == np.float32


def test_gradients_through_ranges_whose_span_overflows() -> None:
    @relay
    def product(x, a, b):
        for i in range(a, b, 2**30):
            for j in range(b, a, -1):
                x = x * 1.5 + x * i / 2**31
                if j < b - 2:
                    break
        for k in reversed(range(a, a + 3)):
            x = x * (1.0 + k / 2**31)
        return x

    bounds = np.int32(-(2**31)), np.int32(2**31 - 1)
    gradient = rl.grad(product)
    found, reference = gradient(np.float64(0.7), *bounds)[0], gradient.interpret(np.float64(0.7), *bounds)[0]
    slope = (product(np.float64(0.7), *bounds) / 0.7).item()
    np.testing.assert_allclose(found, reference, rtol=1e-12)
    np.testing.assert_allclose(found, slope, rtol=1e-12)  # it is linear


def test_a_zip_of_a_tuple_and_a_run_time_range_is_refused() -> None:
    @relay
    def total(n):
        found = 0.0
        for x, _ in zip((1.0, 2.0, 3.0), range(n), strict=False):
            found += x
        return found

    with pytest.raises(rl.TypeCheckError, match="lengths that are known"):
        total(np.int32(2))
