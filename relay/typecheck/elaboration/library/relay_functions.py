"""Relay's own functions in programs: `relay.grad`, references, `relay.replace`, trees, and what templates use."""

from __future__ import annotations

from collections.abc import Callable

from relay.ir.expr import Binding, Breakpoint
from relay.ir.intrinsic import Intrinsic
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import AbstractValue, PythonNumber, PythonObject
from relay.typecheck.elaboration.derivatives import collectives, derivatives, effect_handlers, templates
from relay.typecheck.elaboration.derivatives.template_scopes import STRUCTURAL
from relay.typecheck.elaboration.effects.evidence import PARAM, RNG
from relay.typecheck.elaboration.expressions import axis_alignment, references
from relay.typecheck.elaboration.library import trees
from relay.typecheck.elaboration.library.overloads import Call, Rule, implements
from relay.typecheck.elaboration.values import axis_names
from relay.typecheck.elaboration.values.data_construction import replace

_ZERO, _NO = PythonNumber(0), PythonObject(False)


def _implements(name: str) -> Callable[[Rule], Rule]:
    return implements(Intrinsic(name), name=f"relay.{name}")


def _grad(name: str, with_value: bool) -> None:
    differentiate = derivatives.grad(with_value)

    @_implements(name)
    def rule(call: Call, /, *arguments: AbstractValue, **options: AbstractValue) -> AbstractValue:
        return differentiate(call.checker, call.out, arguments, call.keywords, call.span)


_grad("grad", False)
_grad("value_and_grad", True)


@_implements("jit")
def _jit(call: Call, f: AbstractValue, /, **options: AbstractValue) -> AbstractValue:
    return f


@_implements("ref")
def _ref(call: Call, content: AbstractValue) -> AbstractValue:
    return references.make_reference(call.checker, call.out, content, call.span)


@_implements("read")
def _read(call: Call, cell: AbstractValue) -> AbstractValue:
    return references.read(call.checker, call.out, cell, call.span)


@_implements("write")
def _write(call: Call, cell: AbstractValue, value: AbstractValue) -> AbstractValue:
    references.write(call.checker, call.out, cell, value, call.span)
    return PythonObject(None)


@_implements("replace")
def _replace(call: Call, value: AbstractValue, /, **fields: AbstractValue) -> AbstractValue:
    return replace(call.checker, call.out, value, call.keywords, call.span)


@_implements("rename_axes")
def _rename_axes(call: Call, x: AbstractValue, names: AbstractValue) -> AbstractValue:
    typed = call.checker.materialize(call.out, x, call.span)
    return axis_names.rename_axes(call.checker, typed, names, call.span)


@_implements("align")
def _align(call: Call, x: AbstractValue, like: AbstractValue) -> AbstractValue:
    return axis_alignment.align(call.checker, call.out, x, like, call.span)


@_implements("breakpoint")
def _breakpoint(call: Call) -> AbstractValue:
    call.out.items.append(Binding((), Breakpoint(call.span)))
    return PythonObject(None)


def _reduction(name: str, operator: str) -> None:
    @_implements(name)
    def rule(call: Call, x: AbstractValue, axis_name: AbstractValue) -> AbstractValue:
        return collectives.reduce(call.checker, call.out, operator, x, axis_name, call.span)


for _name in ("sum", "max", "min"):
    _reduction(f"p{_name}", f"collective_{_name}")


@_implements("pmean")
def _pmean(call: Call, x: AbstractValue, axis_name: AbstractValue) -> AbstractValue:
    return collectives.mean(call.checker, call.out, x, axis_name, call.span)


@_implements("all_gather")
def _all_gather(
    call: Call,
    x: AbstractValue,
    axis_name: AbstractValue,
    axis: AbstractValue = _ZERO,
    tiled: AbstractValue = _NO,
) -> AbstractValue:
    return collectives.gather(call.checker, call.out, x, axis_name, (axis, tiled), call.span)


@_implements("axis_index")
def _axis_index(call: Call, axis_name: AbstractValue) -> AbstractValue:
    return collectives.index(call.checker, call.out, axis_name, call.span)


@_implements("param")
def _param(call: Call, name: AbstractValue, shape: AbstractValue, init: AbstractValue) -> AbstractValue:
    return effect_handlers.parameter(call.checker, call.context, call.out, (name, shape, init), call.span)


@_implements("enter_rng.use")
def _enter_rng(call: Call, key: AbstractValue) -> AbstractValue:
    return effect_handlers.enter(call.checker, call.out, RNG, key, call.span)


@_implements("enter_params.use")
def _enter_params(call: Call, values: AbstractValue) -> AbstractValue:
    return effect_handlers.enter(call.checker, call.out, PARAM, values, call.span)


@_implements("leave_handler")
def _leave_handler(call: Call) -> AbstractValue:
    return effect_handlers.leave(call.checker)


@_implements("rng.key")
def _key(call: Call) -> AbstractValue:
    return effect_handlers.next_key(call.checker, call.out, "relay.rng.key", call.span)


def _draw(name: str) -> None:
    @_implements(f"rng.{name}")
    def rule(call: Call, /, *arguments: AbstractValue, **options: AbstractValue) -> AbstractValue:
        key = effect_handlers.next_key(call.checker, call.out, f"relay.rng.{name}", call.span)
        operator = PythonObject(lookup(f"random_{name}"))
        given = [key, *arguments]
        return call.checker.engine.call(
            call.checker, call.context, call.out, operator, given, call.keywords, call.span, call.described
        )


for _name in (
    *("bernoulli", "bits", "categorical", "exponential", "gumbel", "normal", "permutation", "randint", "uniform"),
):
    _draw(_name)


def _tree(name: str) -> None:
    @_implements(name)
    def rule(call: Call, /, *arguments: AbstractValue, **options: AbstractValue) -> AbstractValue:
        return trees.call(call.checker, call.context, call.out, name, arguments, call.keywords, call.span)


def _structural_rule(name: str) -> None:
    @_implements(name)
    def rule(call: Call, *arguments: AbstractValue) -> AbstractValue:
        return templates.apply(call.checker, call.context, call.out, name, arguments, call.span)


for _name in trees.NAMES:
    _tree(_name)
for _name in STRUCTURAL:
    _structural_rule(_name)
