"""Trees: `relay.tree` in Python and in programs, and structures with strings, enumerations and registered classes."""

from __future__ import annotations

import enum
import sys
import types
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay as module
from relay import Array, RegistrationError, RelayError, TypeMismatch, relay, tree
from relay.prelude import List


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


class Level(enum.IntEnum):
    LOW = 1


class Other(enum.IntEnum):
    LOW = 1


@dataclass
class Layer:
    weight: Any
    kind: Any


class Pair(NamedTuple):
    a: Any
    b: Any


@attrs.frozen
class Config:
    rate: Any
    _mode: Any = None


class Linear:
    def __init__(self, weight: Any, bias: Any, name: Any) -> None:
        self.weight, self.bias, self.name = weight, bias, name


module.register_tree(
    Linear, lambda v: ((v.weight, v.bias), v.name), lambda name, parts: Linear(*parts, name), fields=("weight", "bias")
)


@relay
def tripled(x):
    return 3.0 * x


@relay.data
class Record:
    w: module.Tensor[module.Float64, ()]
    n: module.Tensor[module.Int32, ()]


WHOLE = {
    "pair": Pair(1.0, [2.0, (3.0,)]),
    "data": List.Cons(4.0, List.Nil()),
    "layer": Layer(5.0, Mode.TRAIN),
    "config": Config(6.0, "fast"),
    "linear": Linear(7.0, None, "first"),
    "reference": module.ref(8.0),
    "function": tripled,
}


# ---- in Python


def test_all_structures_are_taken_apart_and_put_together() -> None:
    leaves, structure = tree.flatten(WHOLE)
    assert leaves == [6.0, 4.0, 5.0, 7.0, 1.0, 2.0, 3.0, 8.0]  # in the order of the sorted keys
    again = tree.unflatten(structure, leaves)
    assert list(again) == list(WHOLE)
    assert again["pair"] == WHOLE["pair"] and again["data"] == WHOLE["data"]
    assert again["layer"] == WHOLE["layer"] and again["config"] == WHOLE["config"]
    assert (again["linear"].weight, again["linear"].bias, again["linear"].name) == (7.0, None, "first")
    assert again["reference"] is not WHOLE["reference"] and again["reference"].value == 8.0
    assert again["function"] is tripled
    assert tree.structure(again) == structure and hash(tree.structure(again)) == hash(structure)
    assert tree.leaves(tree.map(lambda a, b: a + b, WHOLE, WHOLE)) == [2 * leaf for leaf in leaves]


def test_structures_differ_by_everything_but_leaves() -> None:
    values = [1.0, (1.0,), [1.0], {"a": 1.0}, {"b": 1.0}, None, "a", "b", Mode.TRAIN, Level.LOW, Other.LOW]
    values += [Layer(1.0, "a"), Layer(1.0, "b"), Linear(1.0, 1.0, "a"), Linear(1.0, 1.0, "b"), (), [], {}]
    assert len({tree.structure(value) for value in values}) == len(values)
    assert tree.structure({"a": 1, "b": 2}) == tree.structure({"b": 3.0, "a": np.ones(2)})
    text = "Structure({'a': [*, None], 'b': Layer(weight=*, kind=Mode.TEST), 'c': Linear(weight=*, bias=*, 'n')})"
    assert repr(tree.structure({"c": Linear(1, 2, "n"), "a": [1, None], "b": Layer(1, Mode.TEST)})) == text


def test_functions_have_the_meaning_of_jax() -> None:
    assert tree.map(lambda a, b: (a, b), [1, {"x": 2}], [(3, 4), {"x": None}]) == [(1, (3, 4)), {"x": (2, None)}]
    assert tree.map(lambda v: sum(v), {"a": (1, 2)}, is_leaf=lambda v: isinstance(v, tuple)) == {"a": 3}
    assert tree.reduce(lambda a, b: a + b, [1, (2, 3)]) == 6
    assert tree.reduce(lambda a, b: f"{a}{b}", {"b": 1, "a": 2}, "") == "21"
    assert tree.reduce(lambda a, b: a + b, {}, 5) == 5
    assert tree.leaves({2: "static", 1: 5}) == [5]
    arrays = tree.map(lambda w, g: w - 0.5 * g, tripled(np.ones(2)), np.ones(2))
    assert isinstance(arrays, Array) and arrays.tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"w": (1.0, [2.0])}, r'^error: rest\[0\]\["w"\]\[1\] is a list of 1, expected a list of 2'),
        ({"w": (1.0, 2.0)}, r'rest\[0\]\["w"\]\[1\] is the number 2.0, expected a list of 2'),
        ({"w": [1.0, [2.0, 3.0]]}, r'rest\[0\]\["w"\] is a list of 2, expected a tuple of 2'),
        ({"v": 1.0}, r"rest\[0\] has no 'w', and has 'v'"),
        (None, r"rest\[0\] is None, expected a dict with 'w'"),
    ],
)
def test_mismatched_structures_name_the_place(other: Any, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        tree.map(lambda a, b: a, {"w": (1.0, [2.0, 3.0])}, other)


def test_a_static_part_matches_itself_or_none() -> None:
    assert tree.map(lambda a, b: b, Layer(1.0, "relu"), Layer(2.0, None)) == Layer(2.0, "relu")
    with pytest.raises(TypeMismatch, match=r"rest\[0\].kind is 'tanh', expected 'relu'"):
        tree.map(lambda a, b: b, Layer(1.0, "relu"), Layer(2.0, "tanh"))
    with pytest.raises(TypeMismatch, match=r"is a Linear with 'b', expected a Linear with 'a'"):
        tree.map(lambda a, b: b, Linear(1, 2, "a"), Linear(1, 2, "b"))


def test_wrong_calls_are_explained() -> None:
    with pytest.raises(TypeMismatch, match=r"has 2 leaves, found 1"):
        tree.unflatten(tree.structure((0, 0)), [1])
    with pytest.raises(TypeMismatch, match="needs a structure, found list"):
        tree.unflatten([1], tree.structure(1))
    with pytest.raises(TypeMismatch, match="needs an initializer"):
        tree.reduce(lambda a, b: a, [])


def test_depth_is_no_limit_and_a_cycle_is_an_error() -> None:
    deep: Any = 1.0
    for _ in range(20_000):
        deep = [deep]
    mapped = tree.map(lambda v: v + 1, deep)
    for _ in range(20_000):
        mapped = mapped[0]
    assert mapped == 2.0
    cycle: list[Any] = [1.0]
    cycle.append({"again": (cycle,)})
    with pytest.raises(TypeMismatch, match="contains itself"):
        tree.leaves(cycle)


def test_a_class_is_registered_once_and_rightly() -> None:
    with pytest.raises(RegistrationError, match="registered already"):
        module.register_tree(Linear, lambda v: ((), None), lambda rest, parts: None)
    with pytest.raises(RegistrationError, match="dict is a structure already"):
        module.register_tree(dict, lambda v: ((), None), lambda rest, parts: None)
    with pytest.raises(TypeMismatch, match="must be hashable, found list"):
        tree.leaves(Linear(1.0, 2.0, ["a"]))


class Foreign:
    def __init__(self, parts: Any, name: str) -> None:
        self.parts, self.name = parts, name


@attrs.frozen
class ForeignStructure:
    """What `jax.tree_util.tree_structure` gives for one level: a `PyTreeDef`."""

    name: str | None

    def flatten_up_to(self, value: Foreign) -> list[Any]:
        return list(value.parts)

    def unflatten(self, parts: Any) -> Foreign:
        return Foreign(list(parts), str(self.name))


def test_classes_that_are_registered_with_jax_are_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = types.ModuleType("jax")

    def tree_structure(value: Any, is_leaf: Any) -> ForeignStructure:
        assert not is_leaf(value) and is_leaf(object())
        return ForeignStructure(value.name if isinstance(value, Foreign) else None)

    jax.tree_util = types.SimpleNamespace(tree_structure=tree_structure)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", jax)
    assert tree.leaves(object()) != []
    doubled = tree.map(lambda v: 2 * v, Foreign([1.0, (2.0,)], "f"))
    assert doubled.parts == [2.0, (4.0,)] and doubled.name == "f"
    found = assert_modes_agree(scaled, Foreign([1.0, np.ones(2)], "f"), 3.0, calls=2)
    assert found.name == "f" and float(found.parts[0]) == 3.0 and found.parts[1].tolist() == [3.0, 3.0]


# ---- in programs


@relay
def scaled(value, factor):
    return relay.tree.map(lambda v: v * factor, value)


@relay
def subtracted(params, grads):
    return relay.tree.map(lambda p, g: p - g, params, grads)


@relay
def counted(value):
    leaves, structure = relay.tree.flatten(value)
    again = relay.tree.unflatten(structure, leaves[::-1])
    return len(leaves), again, relay.tree.structure(again) == structure, [float(i) * x for i, x in enumerate(leaves)]


@relay
def of_pairs(pairs):
    return relay.tree.map(lambda p: p[0] * p[1], pairs, is_leaf=lambda p: isinstance(p, tuple))


def test_programs_give_what_python_gives() -> None:
    found = assert_modes_agree(scaled, WHOLE, 2.0, calls=2)
    assert list(found) == list(WHOLE) and float(found.pop("function")(1.0)) == 3.0
    expected = tree.map(lambda v: v * 2.0, {name: WHOLE[name] for name in found})
    assert tree.structure(found) == tree.structure(expected)
    assert [float(v) for v in tree.leaves(found)] == tree.leaves(expected)
    count, again, same, products = assert_modes_agree(counted, {"b": 2.0, "a": (3.0, None)}, calls=2)
    assert int(count) == 2 and bool(same) and [float(p) for p in products] == [0.0, 2.0]
    assert list(again) == ["b", "a"] and float(again["a"][0]) == 2.0 and again["a"][1] is None
    found = assert_modes_agree(of_pairs, {"x": (2.0, 3.0), "y": [(4.0, 5.0)]}, calls=2)
    assert float(found["x"]) == 6.0 and float(found["y"][0]) == 20.0


STRUCTURE = tree.structure({"a": 0, "b": [0, (0,)]})


@relay
def filled(structure, x, y):
    return relay.tree.unflatten(structure, [x, y, x * y]), relay.tree.structure((x,)) == structure


def test_a_structure_is_a_static_argument() -> None:
    found, same = assert_modes_agree(filled, STRUCTURE, 2.0, 3.0, calls=2)
    assert found == {"a": 2.0, "b": [3.0, (6.0,)]} and not same
    with pytest.raises(TypeMismatch, match="2 leaves, found 3") as error:
        filled(tree.structure((0, 0)), 2.0, 3.0)
    assert error.value.span is not None


@pytest.mark.parametrize(
    ("params", "grads", "message"),
    [
        ({"w": (1.0, (2.0,))}, {"w": (1.0, 2.0)}, r'grads\["w"\]\[1\] is a number, expected a tuple of 1'),
        ({"w": (1.0, (2.0,))}, {"w": (1.0, (2.0, 3.0))}, r'grads\["w"\]\[1\] is a tuple of 2, expected a tuple of 1'),
        ({"w": 1.0}, {"v": 1.0}, r"grads has no 'w', and has 'v'"),
        (Layer(1.0, "a"), Layer(1.0, "b"), r"grads.kind is 'b', expected 'a'"),
        (List.Cons(1.0, List.Nil()), 1.0, r"grads is a number, expected a List"),
    ],
)
def test_a_mismatch_in_a_program_is_told_at_its_line(params: Any, grads: Any, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message) as error:
        subtracted(params, grads)
    span = error.value.span
    assert span is not None and "relay.tree.map(lambda p, g: p - g, params, grads)" in span.source.line(span.line)


def test_the_run_compares_what_only_it_knows() -> None:
    longer = List.Cons(1.0, List.Cons(2.0, List.Nil()))
    for error in assert_modes_raise(
        subtracted, longer, longer.tail, error=module.ExecutionError, match="the trees must have the same structure"
    ):
        assert error.value.span is not None and error.value.span.source.filename == __file__


@relay
def refused_leaves(path):
    return relay.tree.leaves(path)


@relay
def refused_is_leaf(x):
    return relay.tree.map(lambda v: v, (x, x), is_leaf=lambda v: v[0] > 0.0)


@relay
def refused_range(x):
    return relay.tree.map(lambda v: v + x, range(3))


def test_what_is_refused_says_why() -> None:
    with pytest.raises(RelayError, match="its constructor is known only at run time"):
        refused_leaves(List.Cons(1.0, List.Nil()))
    with pytest.raises(RelayError, match="is_leaf must be decided at compile time"):
        refused_is_leaf(np.ones(2))
    with pytest.raises(RelayError, match="a range is not part of a tree"):
        refused_range(1.0)


# ---- structures with static parts


@relay
def by_kind(layer, mode):
    factor = 2.0 if layer.kind == "double" or mode == Mode.TEST else 1.0
    return Layer(layer.weight * factor, layer.kind), mode


@relay
def loss(layer, scale=2.0):
    return (layer.weight * layer.weight).sum() * (scale if layer.kind == "double" else 1.0)


@relay
def trained(layer, rounds):
    for _ in range(rounds):
        layer = relay.tree.map(lambda p, g: p - 0.1 * g, layer, relay.grad(loss, wrt="layer")(layer))
    return layer


def test_strings_and_enumerations_specialize_programs() -> None:
    for kind, mode, expected in [("double", Mode.TRAIN, 2.0), ("x", Mode.TRAIN, 1.0), ("x", Mode.TEST, 2.0)]:
        layer, found = assert_modes_agree(by_kind, Layer(1.0, kind), mode, calls=2)
        assert float(layer.weight) == expected and layer.kind == kind and found is mode
    assert {by_kind(Layer(1.0, level), level)[1] for level in (Level.LOW, Other.LOW)} == {Level.LOW, Other.LOW}
    assert type(by_kind(Layer(1.0, Other.LOW), Other.LOW)[1]) is Other


def test_gradients_have_none_for_static_parts() -> None:
    for kind, factor in [("double", 4.0), (Mode.TEST, 2.0), (None, 2.0)]:
        found, rest = assert_modes_agree(relay.grad(loss), Layer(np.ones(2), kind), calls=2)
        assert found.weight.tolist() == [factor] * 2 and found.kind is None and rest is None
    layer = assert_modes_agree(trained, Layer(np.ones(2), "double"), 2, calls=2)
    np.testing.assert_allclose(layer.weight, [0.36, 0.36])
    assert layer.kind == "double"


@relay
def record_loss(record):
    return record.w * record.w


@relay
def record_step(record):
    gradient = relay.grad(record_loss)(record)
    return relay.tree.map(lambda w, g: w if g is None else w - g, record, gradient)


@relay
def applied(layer):
    return layer.kind(layer.weight).sum() if layer.kind != "none" else layer.weight.sum()


def test_the_gradient_by_a_structure_with_a_function_has_none_for_it() -> None:
    found = assert_modes_agree(relay.grad(applied), Layer(np.ones(2), tripled), calls=2)
    assert found.weight.tolist() == [3.0, 3.0] and found.kind is None


def test_the_gradient_of_data_has_none_beside_integers() -> None:
    found = assert_modes_agree(record_step, Record(3.0, 2), calls=2)
    assert float(found.w) == -3.0 and int(found.n) == 2


@relay
def configured(config):
    return Config(config.rate * 2.0, config._mode), Config(1.0)


@attrs.frozen
class Checked:
    value: Any = attrs.field(converter=float)


@relay
def made_checked(x):
    return Checked(x)


def test_classes_of_attrs_are_records() -> None:
    found, other = assert_modes_agree(configured, Config(1.5, "fast"), calls=2)
    assert isinstance(found, Config) and float(found.rate) == 3.0 and found._mode == "fast"
    assert float(other.rate) == 1.0 and other._mode is None
    with pytest.raises(RelayError, match="Checked has a converter, which is not a part of a program"):
        made_checked(1.0)


@relay
def decided(x, y):
    return x + 1.0 if is_pair(y) else x


@relay
def is_pair(y):
    return isinstance(y, tuple)


def test_what_a_function_returns_for_any_value_decides_in_its_caller() -> None:
    assert [float(v) for v in (decided(1.0, (1.0,)), decided(1.0, 1.0))] == [2.0, 1.0]
    assert str(decided.core(1.0, 1.0)).count("add") == 0


# ---- every kind of node, in Python, in a program, through functions, and under a derivative


def through(leaves, structure, pair):
    return relay.tree.unflatten(pair[1], [leaf * 2.0 for leaf in leaves]), structure


@relay
def all_of(value, weights):
    leaves, structure = relay.tree.flatten(value)
    doubled, same = through(leaves, structure, (leaves, structure))
    summed = relay.tree.map(lambda a, b: a + b, doubled, value)
    total = relay.tree.reduce(lambda s, leaf: s + relay.sum(leaf * weights), summed, 0.0)
    return summed, total, relay.tree.structure(summed) == same, len(relay.tree.leaves(summed))


@relay.data
class Point:
    x: module.Tensor[module.Float64, ()]
    y: module.Tensor[module.Float64, ()]


KINDS = {
    "array": np.array([1.0, 2.0]),
    "number": np.float64(3.0),
    "text": ("text", 1.5),
    "none": {"none": None, "x": 1.5},
    "tuple": (1.5, (2.5,), ()),
    "list": [1.5, [2.5], []],
    "dict": {"b": 1.5, "a": {"c": 2.5}},
    "dict of other keys": {2: 1.5, 1: {(0, "c"): 2.5}, Mode.TEST: 3.5},
    "named tuple": Pair(1.5, [2.5]),
    "dataclass": Layer(1.5, "relu"),
    "attrs": Config(1.5, "fast"),
    "namespace": types.SimpleNamespace(w=1.5, inside=types.SimpleNamespace(b=[2.5], kind="relu")),
    "enumeration": (Mode.TEST, 1.5),
    "data": Point(1.5, 2.5),
    "registered": Linear(1.5, None, "first"),
    "reference": [module.ref(1.5)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_node(kind: str) -> None:
    value = tree.map(lambda leaf: np.asarray(leaf, np.float64), KINDS[kind])
    leaves, structure = tree.flatten(value)
    assert tree.structure(tree.unflatten(structure, leaves)) == structure
    found, total, same, count = assert_modes_agree(all_of, value, np.float64(0.5), calls=2)
    assert tree.structure(found) == structure
    assert all(np.allclose(a, 3.0 * b) for a, b in zip(tree.leaves(found), leaves, strict=True))
    assert bool(same) and int(count) == len(leaves)
    assert np.allclose(total, 1.5 * sum(leaf.sum() for leaf in leaves))
    if kind != "reference":  # a reference has no gradient of its own
        gradient = module.grad(relay(lambda v: all_of(v, 0.5)[1]))(value)
        assert all(np.allclose(leaf, 1.5) for leaf in tree.leaves(gradient))
        assert len(tree.leaves(gradient)) == len(leaves)


@relay
def with_a_function(value, weight):
    leaves, structure = relay.tree.flatten(value)
    doubled = relay.tree.unflatten(structure, [2.0 * leaf for leaf in leaves])
    total = relay.tree.reduce(lambda s, leaf: s + leaf * weight, relay.tree.map(lambda a: a, doubled), 0.0)
    return doubled["f"](total), doubled


@relay
def passed_on(value):
    leaves, structure = relay.tree.flatten(value)
    return through(leaves, structure, (leaves, structure))[0]["x"][0]


def test_functions_are_static_parts() -> None:
    value = {"f": tripled, "x": (np.float64(1.5), None)}
    found, doubled = assert_modes_agree(with_a_function, value, np.float64(0.5), calls=2)
    assert float(found) == 4.5 and float(doubled["x"][0]) == 3.0 and float(doubled["f"](1.0)) == 3.0
    gradient = module.grad(relay(lambda v: with_a_function(v, 0.5)[0]))(value)
    assert gradient == {"f": None, "x": (3.0, None)}
    with pytest.raises(RelayError, match="the structure of a tree with functions in it cannot be passed") as error:
        relay(lambda v: passed_on(v))(value)
    assert error.value.span is not None


def named(layer):
    return layer.kind, Layer(layer.weight * 2.0, layer.kind), Mode.TEST


@relay
def with_names(layer):
    kind, twice, mode = named(layer)
    return twice, 1.0 if kind == "relu" and mode == Mode.TEST and twice.kind == kind else 2.0


def either(layer):
    return Layer(layer.weight, "positive") if layer.weight > 0.0 else Layer(layer.weight, "negative")


def by_paths(layer):
    if layer.weight > 0.0:
        return Layer(layer.weight, "positive")
    return Layer(layer.weight, "negative")


def of_modes(layer):
    if layer.weight > 0.0:
        return Mode.TRAIN
    return Mode.TEST


def test_functions_return_strings_and_enumerations() -> None:
    found = assert_modes_agree(with_names, Layer(np.float64(3.0), "relu"), calls=2)
    assert found == (Layer(6.0, "relu"), 1.0)
    chosen = relay(lambda layer: by_paths(layer).kind + either(layer).kind)
    assert assert_modes_agree(chosen, Layer(np.float64(3.0), "relu")) == "positivepositive"
    is_test = relay(lambda layer: of_modes(layer) == Mode.TEST)
    for weight in (3.0, -3.0):
        assert bool(assert_modes_agree(is_test, Layer(np.float64(weight), "relu"))) is (weight < 0)
