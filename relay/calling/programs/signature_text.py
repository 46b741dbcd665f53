"""Signatures of calls in words: what their parts are, and where two of them differ."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence

from relay.ir.tree import InnerNode, describe, show, show_static, steps
from relay.ir.types import BASE_TYPES, DataDefinition, Form


def differences(key: Sequence[object], other: Sequence[object], names: Sequence[str]) -> list[str]:
    """Differences between the signature of a call and another one, which a program was made for."""
    found: list[str] = []
    for position, (one, two) in enumerate(zip(key, other, strict=False)):
        found += _differences(one, two, names[position] if position < len(names) else "the cotangent")
    return found


def _differences(key: object, other: object, path: str) -> Iterator[str]:
    if key == other:
        return
    match key, other:
        case (str() as dtype, tuple() as shape), (str() as other_dtype, tuple() as other_shape) if (
            dtype in BASE_TYPES and other_dtype in BASE_TYPES
        ):
            if dtype != other_dtype:
                yield f"{path} is {dtype}, not {other_dtype}"
            if len(shape) != len(other_shape):
                yield f"{path} has {len(shape)} {'axis' if len(shape) == 1 else 'axes'}, not {len(other_shape)}"
                return
            for axis, (size, expected) in enumerate(zip(shape, other_shape, strict=True)):
                if size != expected:
                    yield f"axis {axis} of {path} is {size}, not {expected}"
        case ("tuple", form, *parts), ("tuple", other_form, *other_parts) if form == other_form and len(parts) == len(
            other_parts
        ):
            for step, part, beside in zip(_steps(form, len(parts)), parts, other_parts, strict=True):
                yield from _differences(part, beside, path + step)
        case type(), ("static", (str() as name, _)) if key.__name__ == name:
            pass  # of another kind of call, for which nobody knows yet whether its value matters
        case ("reference", content), ("reference", other_content):
            yield from _differences(content, other_content, path + ".value")
        case ("list", frozenset() as kinds), ("list", frozenset() as others):
            one, two = (f"a list of {_kinds_text(k)}" if k else "an empty list" for k in (kinds, others))
            yield f"{path} is {one}, not {two}"
        case _:
            yield f"{path} is {text(key)}, not {text(other)}"


def static_text(key: Sequence[object], names: Sequence[str]) -> tuple[str, ...]:
    """The compile-time part of a signature, as text: `mode='sum'`."""
    found: list[str] = []
    for position, part in enumerate(key):
        found += _static_parts(part, names[position] if position < len(names) else "the cotangent")
    return tuple(found)


def _static_parts(key: object, path: str) -> Iterator[str]:
    match key:
        case ("fixed" | "static" | "function", *_) if key != ("fixed", None):
            yield f"{path}={text(key)}"
        case ("tuple", form, *parts):
            for step, part in zip(_steps(form, len(parts)), parts, strict=True):
                yield from _static_parts(part, path + step)
        case _:
            pass


def _steps(form: object, count: int) -> list[str]:
    return steps(form if isinstance(form, Form) else Form(tuple), count)


def text(key: object) -> str:
    """A part of a signature."""
    match key:
        case type():
            return f"a Python {key.__name__}"
        case (str() as dtype, tuple() as shape) if dtype in BASE_TYPES:
            return f"{dtype} {shape}" if shape else dtype
        case ("static", ("default",)):
            return "the default"
        case ("static", (_, value)) | ("fixed", _, value) | ("function", value):
            return _value_text(value)
        case ("fixed", (str(), value)):
            return _value_text(value)
        case ("fixed", value):
            return _value_text(value)
        case ("static", tuple() as parts):
            return f"({', '.join(text(('static', part)) for part in parts)})"
        case ("tuple", form, *parts):
            return show(InnerNode(form if isinstance(form, Form) else Form(tuple), len(parts)))
        case ("list", *_):
            return "a list of any length"
        case ("reference", content):
            return f"a reference to {text(content)}"
        case ("data", DataDefinition() as definition, frozenset() as parts):
            held = _kinds_text({part for _, part in parts})
            return f"a {definition.name} of {held}" if held else f"a {definition.name}"
        case ("data", DataDefinition() as definition, *_):
            return f"a {definition.name}"
        case ("returned" | "chosen", *_):
            return "a function that a program has returned"
        case _:
            return str(key)


def _kinds_text(kinds: Collection[object]) -> str:
    """The kinds of elements, or of contents, that there are."""
    return " and ".join(sorted(map(text, kinds)))


def _value_text(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, enum.Enum):
        return repr(value)
    return show_static(value) if callable(value) or isinstance(value, str | enum.Enum) else describe(value)
