"""The page of all operators, `docs/operators.md`, from their definitions.

python -m relay.operator.page docs/operators.md writes it again
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from relay.operator.definition import Operator
from relay.operator.registry import get_env, operators
from relay.operator.signature_text import signature, type_text

_OPENING = """# Operators

Every operator that comes with Relay, by subject, from its definition: `python -m relay.operator.page docs/operators.md`
writes this page. An operator is a function `relay.name` inside programs, on NumPy arrays outside of them, and a method
of tensors; parameters after the tensors are attributes, which are static. Types are signatures
over dtypes: `T` is any dtype, `T:float` a float, `T..` any number of operands.
[Custom operators](custom-operators.md) are defined in the same way.
"""


def page() -> str:
    """The page's text."""
    parts = [_OPENING]
    aliases: dict[str, list[str]] = {}
    for name in get_env().names():
        found = get_env().find(name)
        if found is not None and found.name != name:
            aliases.setdefault(found.name, []).append(name)
    groups: dict[str, list[Operator]] = {}
    for operator in operators():
        module = module_of(operator)
        if module.startswith("relay.ops."):
            groups.setdefault(module, []).append(operator)
    for module in sorted(groups):
        parts.append(f"## {module.removeprefix('relay.ops.')}\n\n{_subject(module)}\n")
        parts += ("\n".join(_entry(o, aliases.get(o.name, []))) for o in sorted(groups[module], key=lambda o: o.name))
    return "\n".join(parts)


def module_of(operator: Operator) -> str:
    """The module in which an operator is defined."""
    body = operator.composition
    return str((operator.reference if body is None else body.function).__module__)


def _subject(module: str) -> str:
    """The first paragraph of the file's text."""
    text = inspect.getdoc(sys.modules[module]) or ""
    return " ".join(text.split("\n\n")[0].split())


def _entry(operator: Operator, aliases: list[str]) -> Iterator[str]:
    yield f"### {operator.name}\n"
    yield f"`{signature(operator)}`" + (f", also {', '.join(f'`{a}`' for a in aliases)}" if aliases else "") + "\n"
    prose, _, example = operator.documentation.partition("\n\n>>>")
    yield f"{' '.join(prose.split())}\n"
    yield f"{'; '.join(_facts(operator))}.\n"
    if example:
        yield f"```pycon\n>>>{example.rstrip()}\n```\n"


def _facts(operator: Operator) -> Iterator[str]:
    type_ = type_text(operator)
    yield f"Type `{type_}`" if type_ else "Type by its own rule"
    if operator.no_gradient is not None:
        yield f"no gradient: {operator.no_gradient}"
    elif operator.gradient is None:
        yield "gradient of its composition"
    yield "composite" if operator.composition is not None and operator.compute is None else operator.pattern.value
    algebra = operator.algebra
    for fact in ("commutative", "associative", "idempotent", "involution"):
        if getattr(algebra, fact):
            yield fact
    if algebra.identity is not None:
        yield f"identity {algebra.identity}"
    if algebra.linear:
        yield f"linear in {', '.join(operator.operands[i] for i in algebra.linear if i < len(operator.operands))}"
    if not operator.effects:
        yield "pure"
    for requirement in operator.requirements:
        yield f'stops with "{requirement.message}"'


if __name__ == "__main__":  # importing the package has registered the operators
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
