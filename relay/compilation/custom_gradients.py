"""Custom gradients: the derivative that a program defines for a function, instead of the one derived from its code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs

from relay.errors import FrontendError
from relay.frontend.lower import lower_text
from relay.ir.definition import DefinedGradient, Definition, DerivedDefinition, primal
from relay.ir.expr import Function


def with_gradient(
    definition: Definition,
    backward: Definition | DerivedDefinition,
    saving: Definition | DerivedDefinition | None,
) -> Definition:
    """The definition with this gradient: `backward(saved, seed)`, where `saved` is the tuple of the arguments, or what
    `saving` keeps. Raises FrontendError for functions with other parameters."""
    function = definition.function
    for other, count in ((backward, 2), (saving, len(function.parameters))):
        if other is not None and (wanted := len(primal(other).function.parameters)) != count:
            raise FrontendError(
                f"{primal(other).function.name} takes {wanted} argument{'s' * (wanted != 1)}, not {count}",
                primal(other).function.span,
                help="a gradient takes (saved, seed); `saving` takes the function's own parameters",
            )
    if not isinstance(backward, Definition) or not isinstance(saving, Definition | None):
        raise FrontendError("a gradient is a function, not a derivative", function.span)
    names = [p.name for p in function.parameters]

    def adapt_gradient(dynamic: Sequence[bool]) -> Function:
        return _adapted_gradient(names, dynamic, saving=saving is not None)

    return attrs.evolve(definition, gradient=DefinedGradient(backward, saving, adapt_gradient))


def _adapted_gradient(names: Sequence[str], dynamic: Sequence[bool], saving: bool) -> Function:
    """The code of `DefinedGradient.adapted` for parameters with these names."""
    rest, saved, asserted, found = itertools.count(), [], [], []
    for position, (name, is_dynamic) in enumerate(zip(names, dynamic, strict=True)):
        saved.append(f"saved[{next(rest)}]" if is_dynamic else f"static{position}__")
        if is_dynamic:
            found.append(f"found[{position}]")
        else:
            message = f"{name} specializes the function here: it has no gradient"
            asserted.append(f"    assert found[{position}] is None, '{message}'")
    text = f"""\
def gradient(saved, seed):
    found = backward__({"saved" if saving else f"({', '.join(saved)},)"}, seed)
{chr(10).join(asserted)}
    return {", ".join(found)}
"""
    return next(iter(lower_text(text, "<relay.def_gradient>", {}).values())).function
