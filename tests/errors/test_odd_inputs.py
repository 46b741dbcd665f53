"""Odd values of the environment, arguments and texts: each is told in one clear error."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.compilation import disk_cache
from relay.errors import CompileError, FrontendError, TypeMismatch
from relay.support import limits, progress


@pytest.mark.parametrize("given", ["\u00b2", "-1", "1e9", "0", "0x10", "9" * 5000, "\u0663", "1_0"])
def test_numbers_of_the_environment(
    given: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("RELAY_STACK_SIZE", "RELAY_MEMORY_LIMIT", "RELAY_NUM_THREADS"):
        monkeypatch.setenv(variable, given)
        with pytest.raises(CompileError, match=f"{variable} is not a number: ") as caught:
            limits.number(variable)
        assert len(caught.value.message) < 100
    monkeypatch.setenv("RELAY_CACHE_SIZE", given)
    assert disk_cache.limit() == 0
    assert given == "0" or "RELAY_CACHE_SIZE is not a number of bytes" in caplog.text


def test_a_folder_whose_name_is_too_long(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 20))
    monkeypatch.setenv("RELAY_CACHE_DIR", "x" * 5000)
    assert float(relay.from_source("def f(x):\n    return x * 2.0\n")(1.0)) == 2.0
    assert "not kept on disk" in caplog.text
    assert max(len(r.getMessage()) for r in caplog.records) < 300
    assert disk_cache.entries() == [] and disk_cache.clear() == 0


@pytest.mark.parametrize("given", ["nan", "inf", "1e999", "never", "-1"])
def test_odd_times_of_the_progress_bar(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_PROGRESS", given)
    assert progress._delay() == (0.0 if given == "-1" else None)


def cyclic_list() -> object:
    made: list[object] = [1.0]
    made.append({"a": (made,)})
    return made


@dataclasses.dataclass
class Node:
    next: object = None


def cyclic_record() -> object:
    made = Node()
    made.next = [made]
    return made


def cyclic_reference() -> object:
    made = relay.ref(1.0)
    made.value = (made,)
    return made


def deep() -> object:
    made: object = 1.0
    for _ in range(20_000):
        made = (made,)
    return made


@pytest.mark.parametrize("make", [cyclic_list, cyclic_record, cyclic_reference, deep])
def test_arguments_that_contain_themselves_or_are_deep(make: Callable[[], object]) -> None:
    f = relay.from_source("def f(x, y):\n    return x\n")
    said = "an argument of f is nested too deeply" if make is deep else "argument y of f contains itself"
    for call in (f, f.interpret, f.typed, f.compile):
        with pytest.raises(TypeMismatch, match=said) as caught:
            call(1.0, make())
        assert str(caught.value).count("\n") < 10


def test_a_compiled_function_and_an_argument_that_contains_itself() -> None:
    made = relay.from_source("def f(x):\n    return x[0]\n").compile((1.0, 2.0))
    with pytest.raises(TypeMismatch):
        made(cyclic_list())


class Lying:
    """An object that says that it is an array."""

    def __init__(self, give: Callable[[], object], device: Callable[[], object]) -> None:
        self.give, self.device = give, device

    def __dlpack__(self, **options: object) -> object:
        return self.give()

    def __dlpack_device__(self) -> object:
        return self.device()


def missing() -> object:
    return {}["a"]


def zero() -> object:
    return 1 // 0


@pytest.mark.parametrize("give", [lambda: 5, lambda: None, missing, zero, lambda: "x"])
@pytest.mark.parametrize("device", [lambda: (1, 0), lambda: None, missing, lambda: (99, 99), zero])
def test_objects_that_are_no_arrays_in_spite_of_what_they_say(
    give: Callable[[], object], device: Callable[[], object]
) -> None:
    with pytest.raises(TypeMismatch, match="Lying that cannot be read"):
        relay.from_source("def f(x):\n    return x\n").interpret(Lying(give, device))


@pytest.mark.parametrize("given", [b"entry", 5, None, ["fn"]])
def test_what_is_no_text(given: object) -> None:
    for read in (relay.parse, relay.from_source):
        with pytest.raises(FrontendError, match=f"a program must be a string, found {type(given).__name__}"):
            read(given)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "entry @f\nfn @f(%x: " + "(" * 50_000 + "float32" + ")" * 50_000 + ") {}",
        "entry @f\nfn @f(%x: " + "ref[" * 5000 + "float32" + "]" * 5000 + ") {}",
        "entry \0",
        "\ud800",
        "data A = B(" * 3000,
    ],
)
def test_deep_and_broken_texts(text: str) -> None:
    with pytest.raises(FrontendError):
        relay.parse(text)


@pytest.mark.parametrize("inside", ["(" * 90 + "x" + ")" * 90, "-" * 5000 + "x", "x+" * 5000 + "x", "x\0", "\ud800"])
def test_deep_and_broken_functions(inside: str) -> None:
    text = f"def f(x):\n    return {inside}\n"
    with contextlib.suppress(FrontendError):
        relay.from_source(text)


TRANSFORMATIONS: list[Callable[[Any], Any]] = [
    *(
        lambda f, name=name: getattr(relay, name)(f)(1.0)
        for name in ("grad", "value_and_grad", "vmap", "jacobian", "hessian", "checkpoint", "relay")
    ),
    *(lambda f, name=name: getattr(relay, name)(f, 1.0) for name in ("vjp", "check_gradient", "tune", "explain")),
    lambda f: relay.jvp(f, (1.0,), (1.0,)),
    lambda f: relay.to_int8(f, [(1.0,)]),
]


@pytest.mark.parametrize("given", [3, None, "f", len, np.sin, object()], ids=lambda value: type(value).__name__)
def test_transformations_of_what_is_no_function_of_a_program(given: Any) -> None:
    for transform in TRANSFORMATIONS:
        with pytest.raises(relay.RelayError, match=f"function|{type(given).__name__}"):
            transform(given)


@pytest.mark.parametrize("axes", [{0}, object(), [0, {0}], "0", True, 1.5])
def test_axes_that_are_none(axes: Any) -> None:
    with pytest.raises(relay.RelayError, match="axes"):
        relay.vmap(relay.relay(lambda x: x * 2.0), in_axes=axes)(np.ones((2, 3)))
    with pytest.raises(relay.RelayError, match="axes"):
        relay.vmap(relay.relay(lambda x: x * 2.0), out_axes=axes)(np.ones((2, 3)))
