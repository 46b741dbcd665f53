"""The signatures of operators for type checkers and editors: `relay/ops/signatures.pyi`."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import relay
from relay.operator.registry import get_env
from relay.operator.stubs import stubs

FILE = Path(relay.__file__).parent / "ops" / "signatures.pyi"

SAMPLE = """\
import numpy as np
import relay as rl
from relay import Float, Ref, Tensor, relay

@relay
def f(x: Tensor[Float, (3, 4)], cell: Ref[Tensor[Float, ()]], k: int = 2):
    cell.value = x.sum()
    return (rl.tanh(x) @ x.T).sum(axis=0) * k

@relay(opt_level=2)
def g(x: Tensor[Float, (3, 4)]) -> Tensor[Float, ()]:
    return relay.sum(x)

a = np.ones((3, 4), np.float32)
reveal_type(rl.matmul)
reveal_type(f.interpret)
g(a, 2)
rl.softmax(a, axes=1)
reveal_type(rl.grad(g)(a))
reveal_type(rl.grad(f, wrt=("x",)).interpret)
reveal_type(rl.vmap(rl.value_and_grad(f)))
rl.vmap(g)(a, 2)
"""


def test_the_file_is_that_of_the_definitions() -> None:
    written = FILE.read_text(encoding="utf-8")
    assert written == stubs(), "run `python -m relay.operator.stubs relay/ops/signatures.pyi`"


def test_it_has_every_operator_with_its_parameters_and_documentation() -> None:
    (cls,) = (node for node in ast.parse(FILE.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef))
    found = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
    assert len(found) > 250
    for name, node in found.items():
        operator = get_env().find(name)
        assert operator is not None
        several = [node.args.vararg] if node.args.vararg is not None else []
        names = {a.arg for a in (*node.args.args, *several, *node.args.kwonlyargs)}
        assert names == {*operator.operands, *operator.attributes}, name
        assert len(ast.get_docstring(node) or "") > 20, name
    assert ast.unparse(found["clip"].args) == "x: Any, low: Any=None, high: Any=None"


def test_pyright_shows_signatures_of_operators_and_decorated_functions(tmp_path: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "sample.py").write_text(SAMPLE)
    settings = {"include": ["sample.py"], "extraPaths": [str(FILE.parents[2])], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run([pyright, "-p", str(tmp_path), "--outputjson"], capture_output=True, text=True, check=False)
    told = {d["range"]["start"]["line"] + 1: d["message"] for d in json.loads(done.stdout)["generalDiagnostics"]}
    told = {line: message for line, message in told.items() if "could not be resolved" not in message}
    assert 'Type of "rl.matmul" is "(x: Any, y: Any) -> Any"' in told.pop(15)
    assert "k: int = 2) -> Any" in told.pop(16)
    assert "Expected 1 positional argument" in told.pop(17)
    assert 'No parameter named "axes"' in told.pop(18)
    assert told.pop(19).endswith('is "Any"')
    assert told.pop(20).endswith('k: int = 2) -> tuple[Any, ...]"')
    assert "k: int = 2), tuple[Any, Any]]" in told.pop(21)
    assert "Expected 1 positional argument" in told.pop(22)
    assert told == {}
