"""PyTorch is not imported, where it is installed, by anything that Relay does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
import relay

@relay.relay
def f(x):
    return relay.tanh(x) + 1.0

x = np.ones((3,), np.float32)
np.testing.assert_allclose(f(x), np.tanh(x) + 1, rtol=1e-5)
compiled = "tvm" in sys.modules
if compiled:
    f.compile(x).export("model.so")
assert "torch" not in sys.modules
print(compiled)
"""

LOADED = """
import sys
import numpy as np
import relay

np.testing.assert_allclose(relay.load("model.so")(np.ones((3,), np.float32)), np.tanh(1) + 1, rtol=1e-5)
assert "torch" not in sys.modules and "tvm" not in sys.modules
import torch  # the program itself has it
assert torch.IMPORTED
"""


def run(text: str, folder: Path) -> str:
    (folder / "program.py").write_text(text)
    environment = {
        **os.environ,
        "RELAY_CACHE_DIR": str(folder / "cache"),
        "RELAY_CACHE_SIZE": str(1 << 30),
        "PYTHONPATH": os.pathsep.join([str(folder / "packages"), str(Path(__file__).parents[2])]),
    }
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_imports_torch(tmp_path: Path) -> None:
    package = tmp_path / "packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("IMPORTED = True\n")
    assert run(PROGRAM, tmp_path) == "True"
    assert run(PROGRAM, tmp_path) == "False"  # found on disk
    run(LOADED, tmp_path)
