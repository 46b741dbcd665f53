"""Programs as users of Python, PyTorch and JAX write them run as they stand, in every mode."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise, modes, same

import relay as rl
from relay import relay
from relay.errors import ExecutionError, FrontendError, TypeCheckError

pytestmark = pytest.mark.usefixtures("low_effort")

X = np.arange(1.0, 5.0)


# ---- errors that programs raise


@relay
def checked(x, limit):
    if x < 0.0:
        raise ValueError(f"x is {x:.1f}, below {limit}")
    if x > 100.0:
        raise KeyError("too large")
    if x == 50.0:
        raise NotImplementedError
    return x * 2.0


@pytest.mark.parametrize("run", [checked, checked.interpret], ids=["compiled", "interpreted"])
def test_programs_raise_errors_of_pythons_classes(run) -> None:
    assert run(3.0, 0) == 6.0
    with pytest.raises(ValueError, match=r"x is -1\.0, below 0") as caught:
        run(-1.0, 0)
    assert isinstance(caught.value, ExecutionError) and caught.value.span is not None
    with pytest.raises(KeyError, match="too large"):
        run(200.0, 0)
    with pytest.raises(NotImplementedError):
        run(50.0, 0)


def test_what_cannot_be_raised_is_told() -> None:
    for text in ("raise error", "raise int(3)", "raise ValueError('a', 'b')"):
        with pytest.raises(FrontendError, match="raise"):
            rl.from_source(f"def f(x):\n    {text}\n")


class TooLarge(Exception):
    """An error of the user's, with fields of its own."""

    def __init__(self, limit: float, found: float) -> None:
        self.limit, self.found = limit, found


def test_errors_of_classes_of_the_user() -> None:
    @relay
    def limited(x):
        if x > 3.0:
            raise TooLarge(f"{x} is too large")
        return x

    for caught in assert_modes_raise(limited, 4.0, error=TooLarge, match=r"4\.0 is too large"):
        assert isinstance(caught.value, rl.ExecutionError) and assert_modes_agree(limited, 2.0) == 2.0


def test_numbers_as_conditions() -> None:
    @relay
    def odd_sum(n, x):
        total = 0.0
        while n:
            if n % 2:
                total += x
            n -= 1
        return total if x else -1.0

    same(odd_sum, 5, 2.0)
    same(odd_sum, np.int32(4), 0.0)


@dataclass
class Body:
    place: Any
    speed: Any


def test_what_a_loop_takes_is_the_lists_own() -> None:
    @relay
    def moved(bodies, x, forces):
        for _ in range(2):
            for body, force in zip(bodies, forces, strict=True):
                body.speed += force
                if force > 0.0:
                    body.place += body.speed
        for i, row in enumerate(x):
            row[0] = row[1] * i
        groups = [[force] for force in forces]
        for group in groups:
            group.append(group[0] * 2.0)
        counts = np.zeros(3)
        np.add.at(counts, [0, 2, 0], 1.0)
        return [body.place for body in bodies], x.sum(), groups, counts

    def arguments() -> tuple[Any, ...]:
        return [Body(1.0, 0.5), Body(2.0, 0.0)], np.arange(6.0).reshape(3, 2), [0.5, -1.0]

    with rl.as_python():
        places, _, groups, counts = moved(*arguments())
    for run in modes(moved):
        found = run(*arguments())
        assert found[0] == places == [3.5, 2.0] and found[1] == 22.0 and found[2] == groups
        assert np.array_equal(found[3], counts)


# ---- variables that only a loop assigns


def test_a_variable_that_only_a_loop_assigns() -> None:
    @relay
    def last(x, rounds=3):
        for epoch in range(rounds):
            for i, v in enumerate(x):
                y = v * epoch + i
                z = [y, v]
        return y, z, epoch, i

    same(last, X)
    same(last, X, 2)
    assert last.programs()[-1].specialized == ("rounds=2",)
    with pytest.raises(TypeCheckError, match="`y` may have no value here: only the loop assigns it"):
        last(X, 0)
    with pytest.raises(TypeCheckError, match="may have no value here"):
        last(X, np.int32(3))


def test_a_variable_that_some_rounds_assign() -> None:
    @relay
    def largest(x):
        for v in x:
            if v > 2.0:
                y = v
        return y

    with pytest.raises(TypeCheckError, match="`y` may have no value here"):
        largest(X)

    @relay
    def by_round(x):
        for i in range(3):
            if i == 0:  # noqa: SIM108
                y = x
            else:
                y = y + x[i]
        return y

    same(by_round, X)


def test_rounds_of_other_types_are_unrolled() -> None:
    @relay
    def pyramid(x, params):
        state = {"x": x}
        for i in range(2):
            x = np.concatenate([x, x * 2.0])
            state[f"level{i}"] = x @ params[f"w{i}"]
        return state, x

    params = {"w0": np.ones((8, 2)), "w1": np.ones((16, 3))}
    state, x = same(pyramid, X, params)
    assert list(state) == ["x", "level0", "level1"] and x.shape == (16,)
    gradient = rl.grad(lambda x, p: pyramid(x, p)[0]["level1"].sum(), wrt="p")(X, params)
    assert gradient["w1"].shape == (16, 3) and not gradient["w0"].any()


# ---- fields of records


@dataclass
class Account:
    balance: float
    history: list = field(default_factory=list)
    count: int = 0


class Point(NamedTuple):
    x: float


@relay
def deposit(account, amount):
    account.balance += amount
    account.history.append(amount)
    account.count = account.count + 1
    return account


def test_fields_of_records_are_assigned() -> None:
    @relay
    def run(amounts):
        account = Account(0.0)
        for amount in amounts:
            account = deposit(account, amount)
        other = replace(account)
        other.balance = -1.0
        return account.balance, account.count, np.array(account.history), other.balance

    found = run(X)
    assert [float(v) for v in (found[0], found[1], found[3])] == [10.0, 4.0, -1.0]
    np.testing.assert_allclose(found[2], X)
    assert rl.grad(lambda x: run(x)[0])(X).tolist() == [1.0] * 4

    @relay
    def nested(p):
        p["layer"].weight[0] = 5.0
        p["layer"].weight[1:] *= 2.0
        return p

    @dataclass
    class Layer:
        weight: np.ndarray

    assert nested({"layer": Layer(X)})["layer"].weight.tolist() == [5.0, 4.0, 6.0, 8.0]


@dataclass
class Counter:
    count: int


def test_fields_that_cannot_be_assigned() -> None:
    @relay
    def lost(a):
        a.count += 1

    @relay
    def lost_too(a):
        a.count += 1
        return a.count

    with pytest.raises(FrontendError, match="`a` is a value of the caller's, which does not see this change"):
        lost(Counter(1))
    with pytest.raises(FrontendError, match="does not see this change"):
        lost_too(Counter(1))

    @relay
    def of_tuple(p):
        p.x = 3.0
        return p

    with pytest.raises(TypeCheckError, match="Point is a named tuple"):
        of_tuple(Point(1.0))

    @relay
    def unknown(a):
        a.balanec = 1.0
        return a

    with pytest.raises(TypeCheckError, match="Account has no field 'balanec'") as caught:
        unknown(Account(1.0, []))
    assert "did you mean 'balance'?" in str(caught.value)


# ---- parameters that take several arguments


@relay
def spread(first, *rest, scale=1.0, **named):
    total = first.sum()
    for x in rest:
        total = total + x.sum()
    for name, value in named.items():
        total = total + value * (2.0 if name == "b" else 1.0)
    return total * scale + len(rest)


def test_parameters_that_take_several_arguments() -> None:
    same(spread, X)
    same(spread, X, X, np.ones((2, 3)), scale=3.0)
    same(spread, X, X, a=1.0, b=np.float64(4.0))
    dx, (dy,), _, named = rl.grad(spread)(X, X, a=np.float64(1.0), b=np.float64(2.0))
    assert dx.tolist() == dy.tolist() == [1.0] * 4 and named == {"a": 1.0, "b": 2.0}

    @relay
    def through(x, *fs, **options):
        for f in fs:
            x = f(x)
        return x * options.get("scale", 1.0)

    @relay
    def calling(x):
        return through(x, np.sin, lambda v: v + x, scale=2.0) + through(x)

    same(calling, X)
    with pytest.raises(TypeCheckError, match="through needs a value for 'x'"):
        through()


# ---- strings that are known


def test_strings_that_are_known() -> None:
    @relay
    def chosen(params, prefix):
        total = 0.0
        names = []
        for name, value in params.items():
            if name.startswith(prefix) and not name.endswith("_norm"):
                total = total + (value * len(name)).sum()
                names.append(name.upper().replace("W", "K") + "-" + str(len(names)))
        return total, {f"{prefix}.{n}": i for i, n in enumerate(names)}

    params = {"w0": X, "b0": X, "w_norm": X, "w10": X}
    total, found = same(chosen, params, "w")
    assert float(total) == 50.0 and list(found) == ["w.K0-0", "w.K10-1"]

    @relay
    def letters(x):
        word = "abc" * 2
        found = {c: x * word.count(c) for c in word[:3]}
        return found, word[-1] == "c", "b" < "c", ",".join(found).split(",")[1] == "b"

    values, *truths = letters(2.0)
    assert {key: float(v) for key, v in values.items()} == {"a": 4.0, "b": 4.0, "c": 4.0} and all(truths)


# ---- objects of plain classes


class Linear:
    """A layer as in PyTorch, without a library."""

    gain = 2.0

    def __init__(self, weight, bias=None):
        self.weight = weight
        self.bias = bias
        self.generator = np.random.default_rng(0)  # nothing that a program reads

    def __call__(self, x):
        y = x @ self.weight * self.gain
        return y if self.bias is None else y + self.bias

    @property
    def width(self):
        return self.weight.shape[1]


class Network:
    def __init__(self, layers, activation):
        self.layers = layers
        self.activation = activation
        self.name = "network"

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x) / self.layers[0].width


NETWORK = Network([Linear(np.ones((4, 3)), np.arange(3.0)), Linear(np.ones((3, 2)))], np.tanh)


def test_objects_of_plain_classes_are_structures() -> None:
    @relay
    def predict(network, x):
        return network.forward(x)

    np.testing.assert_allclose(predict(NETWORK, X * 0.01), NETWORK.forward(X * 0.01))
    np.testing.assert_allclose(predict.interpret(NETWORK, X * 0.01), NETWORK.forward(X * 0.01))
    gradient = rl.grad(lambda network, x: network.forward(x).sum(), wrt="network")(NETWORK, X * 0.01)
    assert isinstance(gradient, Network) and isinstance(gradient.layers[1], Linear)
    h, s = np.tanh(NETWORK.layers[0](X * 0.01)), NETWORK.layers[0].width
    np.testing.assert_allclose(gradient.layers[1].weight, np.stack([h, h], axis=1) * 2 / s)
    with pytest.raises(TypeCheckError, match="Network has no field 'wieght'"):
        rl.jit(lambda n: n.wieght)(NETWORK)
    with pytest.raises(TypeCheckError, match="Network has no method 'foward'") as caught:
        rl.jit(lambda n, x: n.foward(x))(NETWORK, X)
    assert "did you mean 'forward'?" in str(caught.value)


class Drawn(Linear):
    def __getattr__(self, name):
        return name


def test_objects_of_classes_that_compute_attributes_are_made_outside() -> None:
    with pytest.raises(rl.RelayError, match="Drawn has __getattr__, so that its objects cannot be made in a program"):
        rl.jit(lambda x: Drawn(x)(x))(X)


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


def test_is_of_objects_that_are_known() -> None:
    @relay
    def scaled(x, mode, flag=True):
        if mode is Mode.TRAIN and flag is True:
            return x * 2.0
        return x if mode is not None else -x

    assert scaled(3.0, Mode.TRAIN) == 6.0 and scaled(3.0, Mode.TEST) == 3.0 and scaled(3.0, None) == -3.0
    with pytest.raises(TypeCheckError, match="values have no identity"):
        rl.jit(lambda x, y: x is y)(1.0, 2.0)


# ---- sets, keys, slices, and statements that change nothing


def test_sets_that_are_known() -> None:
    @relay
    def chosen(x, n):
        small = {1, 2, 3}
        names = {"a", "b"} | {"c"}
        found = 0.0
        for number in small & {2, 3, 4}:
            found = found + number * x
        return found, n in small, "c" in names, len(names - {"a"}), {1}.issubset(small)

    found, *truths = same(chosen, X, 2)
    assert found.tolist() == (5 * X).tolist() and [int(t) for t in truths] == [1, 1, 2, 1]
    with pytest.raises(TypeCheckError, match="a run-time key must be") as caught:
        rl.from_source("def f(x):\n    names = {1, 2}\n    names.add(x)\n    return x\n").interpret(2.0)
    assert "elements of a set, must have the same type" in str(caught.value)
    with pytest.raises(TypeCheckError, match="run-time keys are integers"):
        rl.jit(lambda x: len({x, 2.0 * x}))(X)


def test_keys_of_dicts() -> None:
    @relay
    def tables(x, given):
        layers = {}
        for i in range(3):
            layers[i] = x * i
        modes = {Mode.TRAIN: x, Mode.TEST: -x, (0, 1): x + given[7]}
        whole = layers | {"last": layers[2]}
        whole.update(first=x)
        taken = whole.pop(0)
        squares = {i: x[i] ** 2 for i in range(2)}
        return whole, modes[Mode.TEST] + modes[0, 1], taken, squares, 5 in layers, layers.get(9, 1.5)

    whole, total, *_ = same(tables, X, {7: X})
    assert list(whole) == [1, 2, "last", "first"] and total.tolist() == X.tolist()
    with pytest.raises(TypeCheckError, match=r"the key of a dict .* must be known at compile time"):
        rl.jit(lambda d, i: d[i])({0: X, "a": X}, np.int32(1))
    with pytest.raises(TypeCheckError, match="the dict has no key 3"):
        rl.jit(lambda d: d[3])({0: X, 1: X})


WINDOW = slice(1, 3)


def test_slices_and_lists_of_numbers_as_arrays() -> None:
    @relay
    def parts(x):
        return x[WINDOW], x[slice(None, 2)], np.tanh([1.0, 2.0]), np.add(x[:2], [3, 4]), np.dot([1.0, 2.0], [3.0, 4.0])

    same(parts, X)


def test_statements_that_change_nothing() -> None:
    @relay
    def computed(x):
        with np.errstate(all="ignore"):
            y = x / 2.0
        try:
            z = y + 1.0
        finally:
            y = y * 2.0
        return y, z

    same(computed, X)
    with pytest.raises(FrontendError, match="`with` is not part of Relay"):
        rl.from_source("def f(x):\n    with open(x):\n        y = x\n    return x\n", {"open": open})
