"""The signatures of operators for type checkers and editors, `relay/ops/signatures.pyi`, from their definitions.

python -m relay.operator.stubs relay/ops/signatures.pyi      writes it again

An operator is an object, whose calls take anything. The file says what it takes: in the methods of a class, for `from
relay import relay`, which are functions, too, for `import relay`. Values are `Any`: shapes and dtypes are checked by
Relay, not by Python's type checkers.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from relay.operator.definition import REQUIRED, Operator
from relay.operator.page import module_of
from relay.operator.registry import get_env
from relay.operator.relation import Relation

_WIDTH = 120

_OPENING = '''"""The signatures of Relay's operators: `python -m relay.operator.stubs` writes this file."""

from typing import Any

class Operators:
    """The object `relay.name` for each operator."""

'''


def stubs() -> str:
    """The file's text."""
    found = dict(_operators())
    methods = "\n".join(_method(name, operator) for name, operator in found.items())
    functions = "\n".join(f"{name} = Operators.{name}" for name in found)
    return f"{_OPENING}{methods}\n{functions}\n"


def _operators() -> Iterator[tuple[str, Operator]]:
    """Relay's own operators by their names and aliases."""
    for name in get_env().names():
        operator = get_env().find(name)
        if operator is not None and module_of(operator).startswith("relay.ops.") and not keyword.iskeyword(name):
            yield name, operator


def _method(name: str, operator: Operator) -> str:
    parameters = list(_parameters(operator))
    head = f"    def {name}({', '.join(parameters)}) -> Any:"
    if len(head) > _WIDTH:
        head = "\n        ".join([f"    def {name}(", *(f"{p}," for p in parameters)]) + "\n    ) -> Any:"
    return f"    @staticmethod\n{head}\n{_documentation(operator)}"


def _parameters(operator: Operator) -> Iterator[str]:
    attributes = [_attribute(n, value) for n, value in operator.attributes.items()]
    if operator.spread:  # the attributes without a default come first, the others by name
        count = sum(value is REQUIRED for value in operator.attributes.values())
        yield from (*attributes[:count], f"*{operator.operands[0]}: Any", *attributes[count:])
    else:
        yield from (*(f"{operand}: Any" for operand in operator.operands), *attributes)


def _attribute(name: str, default: object) -> str:
    if default is REQUIRED:
        return f"{name}: Any"
    if isinstance(default, str):
        return f"{name}: str = {json.dumps(default)}"
    kind = "bool" if isinstance(default, bool) else "Any"
    written = repr(default) if isinstance(default, bool | int | float | tuple) or default is None else "..."
    return f"{name}: {kind} = {written}"


def _documentation(operator: Operator) -> str:
    """The documentation without its example, after the type."""
    type_ = operator.relation.base.text if isinstance(operator.relation, Relation) else "by its own rule"
    text = " ".join(operator.documentation.partition("\n\n>>>")[0].split()).replace("\\", "\\\\")
    lines = textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    inside = "\n".join(f"        {line}" for line in lines)
    return f'        """Type: {type_}\n\n{inside}\n        """\n'


if __name__ == "__main__":  # importing the package has registered the operators
    Path(sys.argv[1]).write_text(stubs(), encoding="utf-8")
