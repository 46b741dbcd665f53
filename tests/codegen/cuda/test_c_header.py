"""Headers of programs for GPUs: C and C++ compile them, and call the programs with a driver that has no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from gpu import emulation as emulated
from gpu.emulation import COMPILER, EmulatedDriver, build_library, emulation

import relay
from relay.cli import main
from relay.codegen.cuda.driver import use_toolchain
from relay.errors import CompileError

C_COMPILER = shutil.which("gcc")

pytestmark = [
    pytest.mark.skipif(COMPILER is None or C_COMPILER is None, reason="there is no compiler"),
    pytest.mark.usefixtures("separate_kernels"),
]

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)

W = np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6)


def network(x: Any, parameters: Any) -> Any:
    """Captured arrays, a loop of known length with a table, a constant result, and one that is an argument."""
    w, b = parameters
    rows = relay.zeros((5, 6))
    for n in range(5):
        x = relay.tanh(x @ w + b) @ W
        rows = rows.at[n].set(x[0] + n)
    return relay.softmax(x), (rows, b, relay.argmax(x, axis=1)), np.float32([1, 2])


MAIN = """
#include "{name}.h"
#include <stdio.h>

int main(void) {{
  static const size_t input_bytes[] = {{{inputs}}}, output_bytes[] = {{{outputs}}};
  static char content[1 << 20];
  CUdeviceptr inputs[{inputs_count}], outputs[{outputs_count}];
  {name}_program program;
  FILE* file = fopen("inputs", "rb");
  int n, turn;
  for (n = 0; n < {inputs_count}; ++n) {{
    cuMemAlloc(&inputs[n], input_bytes[n]);
    if (fread(content, 1, input_bytes[n], file) != input_bytes[n]) return 1;
    cuMemcpyHtoD(inputs[n], content, input_bytes[n]);
  }}
  for (n = 0; n < {outputs_count}; ++n) cuMemAlloc(&outputs[n], output_bytes[n]);
  fclose(file);
  if ({name}_open(&program)) return 2;
  for (turn = 0; turn < 2; ++turn)
    if ({name}_run(&program, inputs, outputs, NULL)) return 3;
  if ({name}_close(&program)) return 4;
  file = fopen("outputs", "wb");
  for (n = 0; n < {outputs_count}; ++n) {{
    cuMemcpyDtoH(content, outputs[n], output_bytes[n]);
    fwrite(content, 1, output_bytes[n], file);
  }}
  return fclose(file);
}}
"""


def called_from_c(
    folder: Path, name: str, compiler: str, image: str, inputs: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    """Call a program twice from C or C++: its outputs are as expected."""
    content = b"".join(array.tobytes() for array in inputs)
    (folder / "inputs").write_bytes(content)
    sizes = [", ".join(str(array.nbytes) for array in part) for part in (inputs, expected)]
    text = MAIN.format(
        name=name, inputs=sizes[0], outputs=sizes[1], inputs_count=len(inputs), outputs_count=len(expected)
    )
    is_c = compiler == C_COMPILER
    source = folder / ("main.c" if is_c else "main.cpp")
    source.write_text(text)
    flags = ["-Wall", "-Wextra", "-Werror", "-std=c11" if is_c else "-std=c++17", "-D_GNU_SOURCE", "-O1"]
    stub = Path(emulated.__file__).parent / "driver_of_c"
    made = subprocess.run(
        [compiler, *flags, f"-I{stub}", f"-I{folder}", str(source), "-o", str(folder / "main"), "-ldl"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert not made.returncode, made.stderr[:2000]
    places = {"EMULATED_KERNELS": str(folder / "kernels.so"), "EMULATED_IMAGE": image[:1000]}
    done = subprocess.run([str(folder / "main")], cwd=folder, env={**os.environ, **places}, timeout=60)
    assert done.returncode == 0
    found = (folder / "outputs").read_bytes()
    for array in expected:
        part, found = found[: array.nbytes], found[array.nbytes :]
        assert_agree(np.frombuffer(part, array.dtype).reshape(array.shape), array, rtol=1e-5, atol=1e-6)
    assert not found


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.mark.parametrize("compiler", [C_COMPILER, COMPILER])
def test_calls_from_c(tmp_path: Path, compiler: str) -> None:
    function = relay.relay(network)
    arguments = X, (W * np.float32(0.5), np.linspace(0, 1, 6, dtype=np.float32))
    with use_toolchain(emulation(EmulatedDriver())):
        made = function.compile(*arguments, target="cuda")
        made.export(tmp_path / "network.gpu", header=tmp_path / "network.h")
        image = made._program.code.code.decode()
        build_library(image, tmp_path)
    text = (tmp_path / "network.h").read_text()
    assert "0: float [4][6]" in text and "for GPUs of sm_90. Link with -lcuda." in text
    expected = leaves(function.interpret(*arguments))
    called_from_c(tmp_path, "network", compiler, image, leaves(arguments), expected)


def test_the_command(tmp_path: Path) -> None:
    text = relay.relay(lambda x: relay.tanh(x) * 2.0).lower(X).typed
    (tmp_path / "twice.relay").write_text(str(text))
    with use_toolchain(emulation(EmulatedDriver())):
        command = ["compile", str(tmp_path / "twice.relay"), "-o", str(tmp_path / "twice.gpu"), "--target", "cuda"]
        assert main([*command, "--header", str(tmp_path / "twice.h")]) == 0
        loaded = relay.load(tmp_path / "twice.gpu")
        assert_agree(loaded(X), np.tanh(X) * 2, rtol=1e-6)
        assert main([*command, "--entry", "a, b"]) == 2
    assert "cuLaunchKernel" in (tmp_path / "twice.h").read_text()


def test_what_has_no_header(tmp_path: Path) -> None:
    def refused(function: Any, *arguments: Any) -> str:
        with use_toolchain(emulation(EmulatedDriver())):
            made = relay.relay(function).compile(*arguments, target="cuda")
            with pytest.raises(CompileError) as found:
                made.export(tmp_path / "f.gpu", header=tmp_path / "f.h")
        assert not (tmp_path / "f.gpu").exists()
        return str(found.value)

    def halved(x):
        while x.sum() > 1.0:
            x = x * 0.5
        return x

    def powers(x, n):
        for _ in range(n):
            x = x * x
        return x

    reason = "the host decides by values on the GPU (a branch, a loop, a size or a check); leave header= out"
    assert f"halved cannot be exported: it has no C header: {reason}" in refused(halved, X)
    assert reason in refused(powers, X, 3)
