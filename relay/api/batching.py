"""Batching as a public transformation: `vmap`, in Python and inside programs alike.

    vmap(f)(xs, w)  =  stack([f(x, w) for x in xs])

The text of the template is that loop, which is what the reference interpreter runs. Its rounds are independent, so the
optimizer makes calls on all examples of it (`relay/transform/batching`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import attrs
import numpy as np

from relay.api import tree
from relay.api.function import RelayFunction
from relay.api.templates import (
    Parameters,
    TextTemplate,
    call_arguments,
    definition_of,
    derived_function,
    parameter_names,
    parameters_of,
    with_checked_options,
)
from relay.calling.closures import ReturnedFunction
from relay.errors import TypeCheckError
from relay.operator import lookup

SPLIT = "split"
"""The entry of `in_axes` for a key of `relay.random` of which each example has a part of its own."""

EACH = "each"
"""The entry of `in_axes` for a list whose elements are the examples, and that of `out_axes` for a list of results."""

Divergence: TypeAlias = Literal["select", "partition", "loop"]

if TYPE_CHECKING:
    from relay.api.plain_functions import Decorated, P, R

DIVERGENCE = ("select", "partition", "loop")
"""The ways in which examples that take different branches can be batched."""

_OPTIONS = ("in_axes", "out_axes", "axis_size", "axis_name", "divergence")


def _axes_of_parameters(parameters: Parameters, in_axes: object) -> list[tuple[str, object]]:
    """The axes of each parameter. Raises TypeCheckError where they do not fit."""
    names = [name for name, _ in parameters]
    if in_axes is None or isinstance(in_axes, int) or in_axes in (SPLIT, EACH):
        return [(name, in_axes) for name in names]
    if isinstance(in_axes, Mapping):
        unknown = [key for key in in_axes if key not in names]
        if unknown:
            raise TypeCheckError(f"in_axes: there is no parameter {unknown[0]!r}; there are {', '.join(names)}")
        return [(name, in_axes.get(name, 0)) for name in names]
    if isinstance(in_axes, tuple | list):
        omitted = parameters[len(in_axes) :]
        if len(in_axes) < len(names) and all(said.default is not None for _, said in omitted):
            in_axes = (*in_axes, *(None for _ in omitted))  # which have their defaults
        if len(in_axes) != len(names):
            raise TypeCheckError(
                f"in_axes has {len(in_axes)} entries for {len(names)} parameters: {', '.join(names)}",
                help="None stands for what is the same for all examples",
            )
        return list(zip(names, in_axes, strict=True))
    raise TypeCheckError(
        f"in_axes is a number, None, a tuple with one entry for each parameter, or a dict by name; found {in_axes!r}"
    )


def _is_axis(axes: object) -> bool:
    return isinstance(axes, int) and not isinstance(axes, bool)


def _examples_first(axes: object, value: str, name: str) -> str:
    """The text of a value whose mapped axes are first; None in place of what is the same for all examples."""
    if axes is None:
        return "None"
    if _is_axis(axes):
        return f"tree_map__(lambda leaf__: front__(leaf__, {axes}, {name!r}), {value})"
    return _structure(axes, value, name, "in_axes", _examples_first)


def _examples(axes: object, fronts: str, value: str) -> str:
    """The text of one example."""
    if axes is None:
        return value
    if _is_axis(axes):
        return f"tree_map__(lambda leaf__: row__(leaf__, index__), {fronts})"
    return _pairs(axes, fronts, value)


def _pairs(axes: object, fronts: str, value: str) -> str:
    if isinstance(axes, Mapping):
        parts = (f"{k!r}: {_examples(a, f'{fronts}[{k!r}]', f'{value}[{k!r}]')}" for k, a in axes.items())
        return "{" + ", ".join(parts) + "}"
    assert isinstance(axes, tuple | list)
    parts = (_examples(a, f"{fronts}[{k}]", f"{value}[{k}]") for k, a in enumerate(axes))
    inner = ", ".join(parts)
    return f"[{inner}]" if isinstance(axes, list) else f"({inner},)"


def _structure(axes: object, value: str, name: str, option: str, part: Any) -> str:
    if isinstance(axes, Mapping) and axes and all(isinstance(key, str) for key in axes):
        return "{" + ", ".join(f"{k!r}: {part(a, f'{value}[{k!r}]', f'{name}[{k!r}]')}" for k, a in axes.items()) + "}"
    if isinstance(axes, tuple | list) and axes:
        inner = ", ".join(part(a, f"{value}[{k}]", f"{name}[{k}]") for k, a in enumerate(axes))
        return f"[{inner}]" if isinstance(axes, list) else f"({inner},)"
    raise TypeCheckError(f"{option}: the axes of {name} are a number, None, or a tuple, list or dict of these")


def _examples_moved_back(axes: object, value: str, name: str) -> str:
    """The text of a result with the axis of examples where `axes` say."""
    if _is_axis(axes):
        return value if axes == 0 else f"tree_map__(lambda leaf__: back__(leaf__, {axes}), {value})"
    return _structure(axes, value, name, "out_axes", _examples_moved_back)


def _vmap_text(parameters: Parameters, options: Mapping[str, object]) -> str:
    axes = _axes_of_parameters(parameters, options.get("in_axes", 0))
    size = options.get("axis_size")
    if size is not None and not (_is_axis(size) and int(str(size)) >= 0):
        raise TypeCheckError(f"axis_size is the number of examples, found {size!r}")
    if any(axis == EACH for _, axis in axes):
        return _list_text(parameters, axes, options)
    split = [name for name, axis in axes if axis == SPLIT]
    mapped = [(name, axis) for name, axis in axes if axis is not None and axis != SPLIT]
    fronts = "".join(f"    front_{name}__ = {_examples_first(axis, name, name)}\n" for name, axis in mapped)
    wholes = "".join(f"    whole_{name}__ = {name}\n" for name, axis in mapped if not _is_axis(axis))
    examples = "".join(
        f"        {name} = {_examples(axis, f'front_{name}__', f'whole_{name}__')}\n" for name, axis in mapped
    )
    keys = "".join(f"    keys_{name}__ = split__({name}, num=size__)\n" for name in split)
    examples += "".join(f"        {name} = row__(keys_{name}__, index__)\n" for name in split)
    leaves = "".join(f"tree_leaves__(front_{name}__), " for name, _ in mapped)
    labels = "".join(f"{name!r}, " for name, _ in mapped)
    axis, call = options.get("axis_name"), f"f__({call_arguments(parameters)})"
    if axis is not None and not (isinstance(axis, str) and axis):
        raise TypeCheckError(f"axis_name is a name, as 'batch', found {axis!r}")
    divergence = options.get("divergence")
    if divergence is not None and divergence not in DIVERGENCE:
        raise TypeCheckError(f"divergence is None or one of {', '.join(map(repr, DIVERGENCE))}; found {divergence!r}")
    plain = axis is None and divergence is None
    if axis is not None:
        call = f"within_axis__(lambda: {call}, {axis!r}, size__)"
    return f"""\
def vmapped({parameter_names(parameters)}):
{wholes}{fronts}\
    size__ = extent__({size}, ({leaves}), ({labels}))
{keys}\
    def example__(index__):
{examples}\
        return {call}
    rows__ = blank_rows__(example__, size__)
    for index__ in {"range(size__)" if plain else f"axis_range__(size__, {axis or ''!r}, {divergence or ''!r})"}:
        def put__(rows__, row__):
            rows__[index__] = tensor__(row__)
            return rows__
        rows__ = tree_map__(put__, rows__, example__(index__))
    return {_examples_moved_back(options.get("out_axes", 0), "rows__", "the result")}
"""


def _list_text(parameters: Parameters, axes: Sequence[tuple[str, object]], options: Mapping[str, object]) -> str:
    """The text where examples are elements of lists, which may differ in shape."""
    for option in ("axis_size", "axis_name", "divergence"):
        if options.get(option) is not None:
            raise TypeCheckError(f'{option} is for examples along axes of arrays, and in_axes has "each"')
    mapped = [(name, axis) for name, axis in axes if axis is not None]
    lists = [name for name, axis in mapped if axis == EACH]
    for name, axis in mapped:
        if axis != EACH and not _is_axis(axis):
            raise TypeCheckError(f'beside "each" an entry of in_axes is a number or None; that of {name} is {axis!r}')
    fronts = "".join(
        f"    {name}__ = {name if axis == EACH else _examples_first(axis, name, name)}\n" for name, axis in mapped
    )
    checks = "".join(
        f"    if len({name}__) != len({lists[0]}__):\n"
        f'        raise ValueError("{lists[0]} and {name} have different numbers of examples")\n'
        for name, _ in mapped
        if name != lists[0]
    )
    sources = [f"{name}__" for name, _ in mapped]
    every = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
    return f"""\
def vmapped({parameter_names(parameters)}):
{fronts}{checks}\
    results__ = [f__({call_arguments(parameters)}) for {", ".join(name for name, _ in mapped)} in {every}]
    return {_join_results(options.get("out_axes", 0), "result__", "the result")}
"""


def _join_results(axes: object, value: str, name: str) -> str:
    """The text of the results of all elements."""
    if axes == EACH:
        return "results__" if value == "result__" else f"[{value} for result__ in results__]"
    if _is_axis(axes):
        first = value.replace("result__", "results__[0]", 1)
        rows = f"stack__([tree_leaves__({value})[leaf__] for result__ in results__], axis={axes})"
        return f"tree_map__(lambda leaf__: {rows}, numbered__(lambda: {first}))"
    return _structure(axes, value, name, "out_axes", _join_results)


_NAMES = {
    "len": len,
    "zip": zip,
    "ValueError": ValueError,
    "stack__": np.stack,
    "split__": lookup("random_split"),
    "tree_map__": tree.map,
    "tree_leaves__": tree.leaves,
}

VMAP = TextTemplate("vmap", False, _vmap_text, _OPTIONS, names=_NAMES)


@overload
def vmap(
    f: Decorated[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    divergence: Divergence | None = None,
) -> Decorated[P, R]: ...
@overload
def vmap(
    f: Callable[P, Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    divergence: Divergence | None = None,
) -> Decorated[P, Any]: ...
@with_checked_options
def vmap(
    f: Any,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
    divergence: Divergence | None = None,
) -> RelayFunction:
    """The function that applies f to each of many examples, and stacks what it returns.

    `vmap(f)(xs, ys)` is `stack([f(x, y) for x, y in zip(xs, ys)])`, with an axis for the examples in each array of the
    arguments and of the result. Derivatives, other `vmap`s and control flow stand inside and outside of it.

    Args:
        f: a decorated function (inside a program: any function).
        in_axes: the axis of the examples in each argument, None for what is the same for all of them: a number for all
            arguments, a tuple with one entry for each parameter, or a dict by their names (0 for those it does not
            have). An entry for a tuple, list or dict may be one of entries for its parts. The entry "split" is for a
            key of `relay.random`: each example has one of the keys that it is split into. The entry "each" is for a
            list whose elements are the examples: arrays that may differ in shape, or values of data types.
        out_axes: where the axis of the examples stands in the result; a structure of numbers for one of results. With
            "each" in `in_axes` it may be "each", too: the results are a list, and may differ in shape.
        axis_size: the number of examples, which is needed only where no argument has an axis of them.
        axis_name: the name of the axis, by which `relay.psum`, `pmean`, `pmax`, `pmin`, `all_gather` and `axis_index`
            in f ask for all of its examples.
        divergence: what is done where examples take different branches: "select" computes both arms for all of them,
            "partition" runs each arm on those that take it and a `while` on those that are still in it, "loop" runs
            one example after the other. None takes what is estimated to be fastest.

    Numbers, strings, None and functions that are known at compile time are the same for all examples.

    Raises TypeMismatch where an argument has no such axis or the arguments differ in the number of examples, and
    TypeCheckError where the results of examples cannot be stacked.
    """
    options = {"in_axes": in_axes, "out_axes": out_axes, "axis_size": axis_size, "axis_name": axis_name}
    if divergence is not None:
        options["divergence"] = divergence
    if isinstance(f, ReturnedFunction):
        text = ", ".join(f"{name}={value!r}" for name, value in options.items())
        returned: RelayFunction = f.wrapper_function("vmap", [], f"vmap__({{}}, {text})", {"vmap__": vmap})(f)
        return returned
    of, parameters = definition_of(f, "vmap"), parameters_of(f)
    key = ("vmap", _frozen(in_axes), _frozen(out_axes), axis_size, axis_name, _frozen(divergence))
    return derived_function(f, key, lambda: VMAP.definition(of, _with_examples(parameters, in_axes), options))


def _with_examples(parameters: Parameters, in_axes: object) -> Parameters:
    """The parameters, of which those with the entry "each" are lists of examples."""
    lists = {name for name, axis in _axes_of_parameters(parameters, in_axes) if axis == EACH}
    return [(name, attrs.evolve(said, of_examples=name in lists)) for name, said in parameters]  # type: ignore[misc]


def _frozen(axes: Any) -> Any:
    """Axes as a key."""
    if isinstance(axes, Mapping):
        return ("dict", *((key, _frozen(value)) for key, value in axes.items()))
    if isinstance(axes, Sequence) and not isinstance(axes, str):
        return (type(axes).__name__, *map(_frozen, axes))
    return axes if isinstance(axes, Hashable) else id(axes)  # of what is refused where it is read


vmap.__relay_template__ = VMAP  # type: ignore[attr-defined]
