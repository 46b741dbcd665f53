"""Text of a function: its typed program, or a derivative's code, at some types or at all."""

from __future__ import annotations

from relay.compilation.stages import derivative_text
from relay.ir.definition import Definition, DerivedDefinition, primal
from relay.ir.expr import Module
from relay.text.printer import to_text
from relay.typecheck.elaboration import elaborate_structured, scheme
from relay.typecheck.unification import is_known


def typed_text(definition: Definition | DerivedDefinition, typed: Module) -> str:
    """The text of a function's typed program for some arguments."""
    return derivative_text(typed) if isinstance(definition, DerivedDefinition) else to_text(typed, elide=True)


def general_text(definition: Definition | DerivedDefinition, elide: bool = True) -> str:
    """The text at the types that the annotations give, with the elements of large constants unless they are elided.

    Parts that only a call decides are shown by variables, or untyped. Raises TypeCheckError for the derivative of a
    function whose types the annotations leave open.
    """
    module, type_, is_partial, _ = scheme(definition)
    if is_partial:
        return f"# {type_}\n{to_text(primal(definition).function)}"
    if isinstance(definition, DerivedDefinition) and is_known(module.main.type):
        typed = elaborate_structured(definition, list(module.main.type.parameters)).module
        return derivative_text(typed, elide)
    if isinstance(definition, Definition) and not is_known(module.main.type):
        return f"# {type_}\n{to_text(module, elide=elide)}"
    return to_text(module, elide=elide)
