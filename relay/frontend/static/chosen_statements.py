"""Statically selected statements: those at the top of a file that an import would execute."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

from relay.frontend.static.evaluation import Evaluator, NotEvaluated, truth_value

_SYSTEM = ModuleType("relay")  # of which all may be asked
_SYSTEM.__dict__.update(version_info=tuple(sys.version_info), platform=sys.platform)


def of_python(test: ast.expr) -> bool | None:
    """The value of a condition on the version of Python, or the system; None for other conditions."""
    names = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
    attributes = [n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)]
    allowed = (ast.Compare, ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.Subscript, ast.Slice, ast.UnaryOp)
    known = all(isinstance(n, allowed) for n in ast.walk(test) if isinstance(n, ast.expr))
    if not known or set(names) != {"sys"} or not set(attributes) <= {"version_info", "platform"}:
        return None
    try:
        return truth_value(Evaluator({"sys": _SYSTEM}).value(test))
    except NotEvaluated:
        return None


def only_tries_imports(body: list[ast.stmt], handlers: list[ast.ExceptHandler]) -> bool:
    """True if a `try` only imports modules that may be missing. If they exist, its body is what happens. Where it is
    there, that is what happens."""
    missing = ("ImportError", "ModuleNotFoundError")
    caught = [ast.unparse(h.type) if h.type is not None else "" for h in handlers]
    return all(isinstance(s, ast.Import | ast.ImportFrom) for s in body) and all(c in missing for c in caught)
