"""Libraries for C that are compiled from programs in Relay's notation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.cli import main
from relay.compilation.ahead_of_time import compile_library
from relay.errors import CompileError

GEOMETRY = """
module "geometry" stage core;

type V = Tensor[float32, (3,)];
type F = Tensor[float32, ()];

dims n, m;

data List { Nil, Cons(head: F, tail: List) }

fn square(%x: V) -> F {
  let %y: V = multiply(%x, [1.0, 2.0, 3.0]f32);
  let %z: V = multiply(%y, %x);
  let %s: F = sum(%z);
  %s
}

fn norm(%x: V) -> F {
  let %s: F = @square(%x);
  let %n: F = sqrt(%s);
  %n
}

fn total(%xs: List, %start: F) -> (F, List) {
  let %sum: F = loop 'rest (%ys: List = %xs, %s: F = %start) {
    match %ys {
      Nil -> { exit 'rest(%s) }
      Cons(%head: F, %tail: List) -> {
        let %t: F = add(%s, %head);
        next 'rest(%tail, %t)
      }
    };
    dead
  };
  let %more: List = List.Cons(%sum, %xs);
  let %both: (F, List) = (%sum, %more);
  %both
}

derivative slope: fn(V) -> V = grad{wrt=(0,)} @norm
"""
JOINED = """
dims n, m;

fn joined(%a: Tensor[float64, (n, 2)], %b: Tensor[float64, (m, 2)]) -> Tensor[float64, (n + m, 2)] {
  let %r: Tensor[float64, (n + m, 2)] = concatenate(%a, %b, axis=0);
  let %s: Tensor[float64, (n + m, 2)] = multiply(%r, 2.0f64);
  %s
}
"""
PROGRAM = """
#include <stdio.h>
#include "geometry.h"
#include "joined.h"

int main(void) {
  const float x[] = {1, 2, 3};
  const int64_t shape[] = {3, 2}, other[] = {1, 2};
  int64_t made[2];
  float value, found[3];
  const void* inputs[4];
  void* outputs[2] = {&value, found};
  norm_program norm;
  slope_program slope;
  total_program total;
  joined_program joined;
  norm_array of_norm = {x, shape};
  slope_array of_slope = {x, shape};
  if (norm_open(&norm) || norm_run(&norm, &of_norm, outputs)) return 1;
  if (slope_open(&slope) || slope_run(&slope, &of_slope, outputs + 1)) return 2;
  printf("%.9g %.9g %.9g %.9g\\n", value, found[0], found[1], found[2]);
  if (total_open(&total)) return 3;
  int64_t list = total_cell0(&total), result;
  *(int32_t*)total_content0(&total, list, 0) = total_List_Nil;
  for (int n = 0; n < 9; ++n) {
    int64_t next = total_cell0(&total);
    *(int32_t*)total_content0(&total, next, 0) = total_List_Cons;
    *(float*)total_content0(&total, next, 1) = n;
    *(int64_t*)total_content0(&total, next, 2) = list;
    list = next;
  }
  float start = 0.5;
  total_array of_total[] = {{&list, shape}, {&start, shape}};
  void* results[] = {&value, &result};
  if (total_run(&total, of_total, results)) return 4;
  printf("%g", value);
  while (*(int32_t*)total_content0(&total, result, 0) == total_List_Cons) {
    printf(" %g", *(float*)total_content0(&total, result, 1));
    result = *(int64_t*)total_content0(&total, result, 2);
  }
  double a[3][2] = {{1, 2}, {3, 4}, {5, 6}}, b[1][2] = {{7, 8}}, c[4][2];
  joined_array of_joined[] = {{a, shape}, {b, other}};
  joined_shape0(of_joined, made);
  outputs[0] = c;
  if (joined_open(&joined) || joined_run(&joined, of_joined, outputs)) return 5;
  printf("\\n%d %d %g %g\\n", (int)made[0], (int)made[1], c[0][1], c[3][1]);
  joined_close(&joined); total_close(&total); slope_close(&slope); norm_close(&norm);
  (void)inputs;
  return 0;
}
"""
EXPECTED = [
    [6, 1 / 6, 4 / 6, 9 / 6],
    [36.5, 36.5, *range(8, -1, -1)],
    [4, 2, 4, 16],
]


def written(folder: Path, suffix: str, target: str | None = None) -> None:
    """Both libraries with headers, and the program that uses them."""
    for name, text in (("geometry", GEOMETRY.replace("dims n, m;\n", "")), ("joined", JOINED)):
        (folder / f"{name}.relay").write_text(text)
        arguments = ["compile", str(folder / f"{name}.relay"), "-o", str(folder / f"{name}{suffix}")]
        arguments += ["--header", str(folder / f"{name}.h")]
        assert main([*arguments, *(("--target", target) if target else ())]) == 0
    (folder / "main.c").write_text(PROGRAM)


def outcome(folder: Path, compiler: str, suffix: str, run: list[str], *options: str) -> list[list[float]]:
    """What the program prints, compiled and run like this."""
    names = [f"./{name}{suffix}" for name in ("geometry", "joined")]
    command = [compiler, "-Wall", "-Wextra", "-Werror", "main.c", *names, "-lm", "-o", "main", *options]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([*run, "./main"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [[float(word) for word in line.split()] for line in ran.stdout.splitlines()]


def agree(found: list[list[float]]) -> None:
    for line, expected in zip(found, EXPECTED, strict=True):
        np.testing.assert_allclose(line, expected, rtol=1e-6)  # of float32


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_several_functions_in_c(tmp_path: Path) -> None:
    written(tmp_path, ".so")
    agree(outcome(tmp_path, "cc", ".so", []))
    command = ["nm", "-D", "--undefined-only", "geometry.so"]
    needed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[-1].partition("@")[0] for line in needed} <= {"realloc", "memcpy", "memmove", "memset"}
    declared = (tmp_path / "geometry.h").read_text()
    assert "0: int64_t, a value of List that total_cell0 has made" in declared
    assert "square_open" not in declared  # which only others call
    assert "for any m, n that the inputs agree in" in (tmp_path / "joined.h").read_text()


NAMES = ("int", "double", "main", "size", "div", "int32", "register", "class", "time", "self", "inputs", "f", "F")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_names_that_c_has(tmp_path: Path) -> None:
    """Reserved words, types of C's headers, names that differ in case only, and messages with any character."""
    x = "Tensor[float32, ()]"
    text = "".join(
        f"fn {name}(%int: {x}, %self: {x}) -> {x} {{\n  let %for: {x} = add(%int, {number}.0f32);\n"
        f'  let %is: Tensor[bool, ()] = less(%for, %self);\n  assert %is "{name} of 1\u00e91 ??= \\"";\n  %for\n}}\n'
        for number, name in enumerate(NAMES)
    )
    (tmp_path / "p.relay").write_text(text)
    arguments = ["compile", str(tmp_path / "p.relay"), "-o", str(tmp_path / "libp.so")]
    assert main([*arguments, "--header", str(tmp_path / "p.h")]) == 0
    calls = "".join(
        f"  {{ {n}_program p; {n}_array in[] = {{{{&x, 0}}, {{&y, 0}}}};\n"
        f"    if ({n}_open(&p) || {n}_run(&p, in, out)) return 1;\n"
        f'    y = 0; printf("%g %s\\n", result, {n}_message({n}_run(&p, in, out))); y = 99; {n}_close(&p); }}\n'
        for n in NAMES
    )
    opening = '#include <stdio.h>\n#include "p.h"\nint main(void) {\n  float x = 5, y = 99, result;\n'
    opening += "  void* out[] = {&result};\n"
    (tmp_path / "main.c").write_text(opening + calls + "  return 0;\n}\n")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "./libp.so", "-o", "main"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in ran] == [str(5 + number) for number in range(len(NAMES))]
    assert all(f'{name} of 1\u00e91 ??= "' in line for line, name in zip(ran, NAMES, strict=True))


AARCH64 = next(filter(None, map(shutil.which, ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc-12"))), None)
QEMU = next(filter(None, map(shutil.which, ("qemu-aarch64", "qemu-aarch64-static"))), None)


@pytest.mark.skipif(AARCH64 is None or QEMU is None, reason="there is no compiler for AArch64, or no emulator")
def test_aarch64_under_an_emulator(tmp_path: Path) -> None:
    written(tmp_path, ".o", "aarch64-linux-gnu,cortex-a72,+neon")
    assert AARCH64 is not None and QEMU is not None
    flags = os.environ.get("AARCH64_FLAGS", "").split()
    agree(outcome(tmp_path, AARCH64, ".o", [QEMU], "-static", *flags))


def test_object_code_of_another_processor(tmp_path: Path) -> None:
    from relay.codegen.lowering.module_builder import assemble_ahead
    from relay.codegen.tvm.machine import Machine, code_for
    from relay.compilation.stages import to_core

    core = to_core(relay.parse(JOINED), 2)
    machines = {}
    for target in ("aarch64-linux-gnu", "x86_64-linux-gnu,haswell", "riscv64-linux-gnu,generic-rv64,+d,+v"):
        with code_for(Machine.parse(target)):
            (code,) = assemble_ahead(core, "joined").object_code
        machines[target] = int.from_bytes(code[18:20], "little")  # `e_machine` of ELF
    assert list(machines.values()) == [183, 62, 243]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entries": ["nrom"]}, "the program has no function 'nrom'; did you mean 'norm'?"),
        ({"target": "aarch64-linux-gnu,a,b"}, "a target is TRIPLE[,PROCESSOR][,+FEATURE].., found"),
        ({"target": "sparc-sun-solaris"}, "code is made for processors with addresses of 64 bits: x86_64, aarch64"),
    ],
)
def test_what_cannot_be_compiled(tmp_path: Path, options: dict[str, object], message: str) -> None:
    module = relay.parse(GEOMETRY.replace("dims n, m;\n", ""))
    with pytest.raises(CompileError) as error:
        compile_library(module, tmp_path / "it.so", **options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert not (tmp_path / "it.so").exists()
