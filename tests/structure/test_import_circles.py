"""Files import each other in one direction, but for small circles, which `lint-imports` counts."""

from __future__ import annotations

import ast
import tomllib

from import_circles import FILES, ROOT, arrows, circles, imported_modules


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d"], "f": ["a"]}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]


def test_folders_import_folders() -> None:
    graph = {"relay": ["relay.a.x"], "relay.a.x": ["relay.b", "relay.a.y"], "relay.a.y": ["relay.b"], "relay.b": []}
    assert arrows(graph) == {("", "a"), ("a", "b")}


def test_imports_inside_of_functions_count() -> None:
    text = "if TYPE_CHECKING:\n    import relay.tree\n\ndef f():\n    from relay import errors\n"
    assert list(imported_modules(ast.parse(text))) == ["relay.errors"]


def test_large_circles_break_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (contract for contract in contracts["contracts"] if contract["type"] == "circles")
    assert contract["largest"] <= 8 and contract["most_arrows"] <= 133
    assert contracts["contract_types"] == ["circles: tests.support.import_circles.CircleContract"]
    assert len(FILES) > 500
