"""What programs take from Python and return to it: no references, which live within a call."""

from __future__ import annotations

from relay.errors import CompileError
from relay.ir.expr import Function
from relay.ir.types import DataType, RefType, StackType, TupleType, Type, prune, show


def held_reference(type_: Type | None, is_result: bool) -> RefType | None:
    """The first reference in values of a type, through tuples and data. The cells of a list that is returned are its
    own."""
    pending, seen = [type_], set()
    while pending:
        match prune(pending.pop()):  # type: ignore[arg-type]
            case RefType() as found:
                return found
            case StackType(RefType(content)) if is_result:
                pending.append(content)
            case TupleType(items):
                pending += reversed(items)
            case DataType(definition) if definition not in seen:
                seen.add(definition)
                pending += [field for constructor in definition.constructors for field in constructor.fields]
            case _:
                pass
    return None


def refuse_references(function: Function) -> None:
    """Raise CompileError if an entry takes or returns a reference."""
    places = [(p.type, False, f"takes a reference as {p.name}") for p in function.parameters]
    for type_, is_result, what in (*places, (function.result, True, "returns a reference")):
        found = held_reference(type_, is_result)
        if found is not None:
            raise CompileError(
                f"{function.name} {what}, {show(found)}, and references live within a call",
                function.span,
                help="return what it holds: `r.value`" if is_result else "pass what it holds, and make it inside",
            )
