"""`relay.grad` and the other derivative operators inside programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from relay.errors import Span, TypeCheckError
from relay.ir.expr import Grad, Static
from relay.support.foreign_names import argument_help, own_name
from relay.typecheck.elaboration.abstract_values import AbstractValue, DerivativeFunction, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.derivatives import templates
from relay.typecheck.elaboration.effects.effects import evaluated_often
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.expressions.arguments import static_positions
from relay.typecheck.elaboration.expressions.attributes import static_value
from relay.typecheck.elaboration.values.objects import position_of

Keywords = Sequence[tuple[str, AbstractValue]]


def grad(with_value: bool) -> Callable[..., AbstractValue]:
    """The rule for `grad`, or for `value_and_grad`."""

    def rule(
        checker: Checker,
        out: TypedBlockBuilder,
        arguments: Sequence[AbstractValue],
        keywords: Keywords,
        span: Span | None,
    ) -> AbstractValue:
        names = ("f", "wrt", "output", "keeping", "seedable", "memory", "has_aux")
        if len(arguments) > len(names):
            raise TypeCheckError(f"grad takes at most {len(names)} arguments, found {len(arguments)}", span)
        given = dict(zip(names, arguments, strict=False))
        for written, entity in keywords:
            key = own_name(written, names)
            if key not in names:
                raise TypeCheckError(f"grad has no argument {key!r}", span, help=argument_help(key, names))
            if key in given:
                raise TypeCheckError(f"grad got two values for {key!r}", span)
            given[key] = entity
        if "f" not in given:
            raise TypeCheckError("grad needs the function to differentiate", span)
        function = given.pop("f")
        options = {k: static_value(v, k, span) for k, v in given.items()}
        wrt = options.get("wrt")
        positions = None
        if wrt is not None:
            parts = wrt if isinstance(wrt, tuple) else (wrt,)
            positions = tuple(position_of(function, p, span) for p in parts)
        seedable, has_aux = (bool(options.get(name, False)) for name in ("seedable", "has_aux"))
        try:
            output, kept = output_option(options.get("output")), keeping_option(options.get("keeping", ()))
            output, kept = components(output, kept, with_value, has_aux)
            memory = memory_option(options.get("memory", "store"))
        except TypeCheckError as error:
            raise error.with_span(span) from None
        return DerivativeFunction(
            function, Grad(Static(None), positions, output, kept, seedable, with_value, has_aux, memory, span)
        )

    return rule


def _is_position(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def output_option(value: object) -> int | None:
    """The option `output` of `grad`. Raises TypeCheckError."""
    if value is None or _is_position(value):
        return value
    raise TypeCheckError(f"output is the position of a component of the result, found {value!r}")


def keeping_option(value: object) -> tuple[int, ...]:
    """The option `keeping` of `grad`. Raises TypeCheckError."""
    positions = tuple(value) if isinstance(value, list | tuple) else (value,)
    for position in positions:
        if not _is_position(position):
            raise TypeCheckError(f"keeping holds positions of components of the result, found {position!r}")
    return positions


def components(
    output: int | None, keeping: tuple[int, ...], with_value: bool, has_aux: bool
) -> tuple[int | None, tuple[int, ...]]:
    """The options `output` and `keeping` together with `has_aux`, which sets both. Raises TypeCheckError."""
    if not has_aux:
        return output, keeping
    if output is not None or keeping:
        raise TypeCheckError(
            "has_aux differentiates the first of two results and returns the second: it goes without output and keeping"
        )
    return 0, () if with_value else (1,)


def memory_option(value: object) -> str | int:
    """The option `memory` of `grad`. Raises TypeCheckError."""
    if value in ("store", "recompute") or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        assert isinstance(value, str | int)
        return value
    raise TypeCheckError(f'memory is "store", "recompute" or a number of bytes, found {value!r}')


def from_template(
    checker: Checker,
    out: TypedBlockBuilder,
    template: templates.Template,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """Call `relay.vjp`, `relay.jacobian` and the like: `arguments` begin with the function that they are about."""
    given = dict(keywords)
    if not arguments and "f" in given:
        arguments = [given.pop("f")]
    if not arguments:
        raise TypeCheckError(f"{template.name} needs a function", span)
    function, *rest = arguments
    if not template.called:
        given.update(zip(template.options, rest, strict=False))
        if len(rest) > len(template.options) or not given.keys() <= set(template.options):
            raise TypeCheckError(f"{template.name} takes {_comma_list(('f', *template.options))}", span)
        if template.of_gradient:
            wrt = [(name, v) for name, v in given.items() if name == "wrt"]
            function = grad(False)(checker, out, [function], wrt, span)
        options = {name: _option(v, name, span) for name, v in given.items()}
        made = templates.instantiate(checker, out, template, function, None, options, span)
        if template.repeats:
            evaluated_often(made, function, template.name, span)
        return made
    rest += [given.pop(name) for name in template.options if name in given]
    if given or (template.options and len(rest) != len(template.options)):
        raise TypeCheckError(
            f"{template.name} takes {_comma_list(('f', *(template.options or ('its arguments',))))}", span
        )
    made = templates.instantiate(checker, out, template, function, len(rest), {}, span)
    static = static_positions(made)
    rest = [
        argument if position in static else weak_types.open_integer_bases(checker, out, argument)
        for position, argument in enumerate(rest)
    ]
    return checker.engine.call_function(checker, out, made, rest, (), span)


def _option(entity: AbstractValue, name: str, span: Span | None) -> object:
    """The value of an option: static, with the structures that hold it."""
    if isinstance(entity, Tuple):
        items = [_option(item, name, span) for item in entity.items]
        if entity.form is not None and entity.form.cls is dict:
            return dict(zip(entity.form.names, items, strict=True))
        return items if entity.form is not None and entity.form.cls is list else tuple(items)
    return static_value(entity, name, span)


def _comma_list(names: Sequence[str]) -> str:
    return ", ".join(names)
