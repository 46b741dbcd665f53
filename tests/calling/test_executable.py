"""Compiled functions by themselves, and in files that another process loads."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import Any as Any_
from relay import Executable, Float, Float64, Ref, Tensor, relay
from relay.errors import CompileError, ExecutionError, TypeCheckError, TypeMismatch

random = np.random.default_rng(0)
F, V = Tensor[Float64, ()], Tensor[Float64, (3,)]
W, B = random.standard_normal((4, 3)), random.standard_normal(3)


@relay
def layer(x):
    return relay.tanh(x @ W + B)


@relay
def step(parameters, x, rate):
    w, b = parameters["w"], parameters["b"]
    error = relay.sum((x @ w + b) * (x @ w + b))
    return {"w": w - rate * w, "b": b - rate * error}, error


@relay
def checked(x):
    assert x[0] > 0.0, "the first element must be positive"
    return x * 2.0


X = random.standard_normal((5, 4))


def test_compile_for_arrays_and_for_types() -> None:
    for made in (layer.compile(X), layer.compile(Tensor[Float64, (5, 4)])):
        assert isinstance(made, Executable)
        for _ in range(3):
            np.testing.assert_allclose(made(X), np.tanh(X @ W + B), rtol=1e-12)
        with pytest.raises(TypeMismatch, match=r"argument x must be Tensor\[float64, \(5, 4\)\], found float32"):
            made(X.astype(np.float32))
        with pytest.raises(TypeMismatch, match="takes 1 arguments, found 2"):
            made(X, X)
        np.testing.assert_allclose(made(np.asfortranarray(X)), np.tanh(X @ W + B), rtol=1e-12)


@relay
def annotated(x: Tensor[Float64, (3,)], y: Tensor[Float64, (3,)]):
    return relay.sum(x * y)


@relay
def with_a_default(x: Tensor[Float64, (3,)], scale=2.0):
    return x * scale


def test_compile_for_annotated_types() -> None:
    x, y = np.arange(3.0), np.ones(3)
    assert float(annotated.compile()(x, y)) == 3.0
    np.testing.assert_array_equal(relay.grad(annotated, wrt="x").compile()(x, y), y)
    with pytest.raises(TypeCheckError, match="with_a_default needs a value for 'x'"):
        with_a_default.compile()


def test_sizes_that_vary() -> None:
    made = relay(dynamic=True)(layer.__wrapped__).compile(X)
    for rows in (2, 5, 40):
        x = random.standard_normal((rows, 4))
        np.testing.assert_allclose(made(x), np.tanh(x @ W + B), rtol=1e-12)


LOAD = """
import sys
import numpy as np
import relay

made = relay.load(sys.argv[1])
inputs = np.load(sys.argv[2])
parameters = {"w": inputs["w"], "b": inputs["b"]}
for _ in range(2):
    (new, error) = made(parameters, inputs["x"], 0.5)
np.savez(sys.argv[3], w=new["w"], b=new["b"], error=error)
assert "tvm" not in sys.modules
"""


def test_a_training_step_in_another_process(tmp_path: Path) -> None:
    parameters = {"w": W, "b": B}
    made = step.compile(parameters, X, 0.5)
    made.export(tmp_path / "step.so")
    np.savez(tmp_path / "inputs.npz", w=W, b=B, x=X)
    command = [sys.executable, "-c", LOAD, *(str(tmp_path / n) for n in ("step.so", "inputs.npz", "outputs.npz"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    new, error = step.interpret(parameters, X, 0.5)
    with np.load(tmp_path / "outputs.npz") as found:
        for name, expected in (("w", new["w"]), ("b", new["b"]), ("error", error)):
            np.testing.assert_allclose(found[name], np.asarray(expected), rtol=1e-10)


def test_errors_of_a_loaded_program_name_the_place(tmp_path: Path) -> None:
    checked.compile(B).export(tmp_path / "checked.so")
    loaded = relay.load(tmp_path / "checked.so")
    np.testing.assert_array_equal(loaded(np.abs(B)), 2 * np.abs(B))
    with pytest.raises(ExecutionError, match=r"test_executable.py:\d+:\d+.*the first element must be positive"):
        loaded(-np.abs(B))


def test_captured_arrays_are_in_the_file(tmp_path: Path) -> None:
    layer.compile(X).export(tmp_path / "layer.so")
    np.testing.assert_allclose(relay.load(tmp_path / "layer.so")(X), np.tanh(X @ W + B), rtol=1e-12)


TABLES = (
    random.standard_normal((300, 100)).astype(np.float32),
    np.arange(5) % 2 == 0,
    random.standard_normal(7).astype(np.float32),
    np.arange(-3, 4, dtype=np.int8),
)


@relay
def captured(x):
    table, mask, offsets, small = TABLES
    chosen = relay.where(mask, x[:5], 0.0)
    return (x @ table).sum() + chosen.sum() + (x[:7] * offsets * small.astype(x.dtype)).sum()


def test_captured_arrays_are_in_the_file_once_and_aligned(tmp_path: Path) -> None:
    x = random.standard_normal(300).astype(np.float32)
    path = tmp_path / "captured.so"
    made = captured.compile(x)
    made.export(path)
    assert path.stat().st_size < 1.6 * TABLES[0].nbytes
    loaded = relay.load(path)
    path.unlink()  # what is loaded stays
    rounding = float(np.finfo(np.float32).eps / 2 * (np.abs(x) @ np.abs(TABLES[0])).sum())  # the terms cancel
    assert float(loaded(x)) == float(made(x)) == pytest.approx(float(captured.interpret(x)), abs=rounding)
    assert all(a.ctypes.data % 64 == 0 for a in loaded._program.native.constants.values())
    loaded.export(path)
    assert float(relay.load(path)(x)) == float(made(x))


def damaged(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


@pytest.mark.parametrize("change", [damaged, lambda content: content[:-3], lambda content: b"", damaged])
def test_damaged_files_are_refused(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "layer.so"
    layer.compile(X).export(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CompileError, match=r"damaged|not a library that relay exported"):
        relay.load(path)


@relay
def printing(x):
    print("x", x)
    return x


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="printing cannot be exported: it calls Python"):
        printing.compile(B).export(tmp_path / "printing.so")
    with pytest.raises(OSError):
        relay.load(tmp_path / "missing.so")


CPP = """
#include <cstdio>
#include "layer.h"

int main(int count, char** arguments) {
  for (int n = 2; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 2; }
  layer_program layer;
  if (layer_open(&layer, arguments[1])) { puts(dlerror()); return 3; }
  double x[5][4], y[5][3];
  for (int i = 0; i < 5; ++i) for (int j = 0; j < 4; ++j) x[i][j] = 0.1 * i - 0.2 * j;
  int64_t shape[] = {5, 4}, wrong[] = {4, 5};
  layer_array input = {x, shape}, other = {x, wrong};
  void* output = y;
  for (int n = 0; n < 3; ++n)
    if (int status = layer_run(&layer, &input, &output)) { puts(layer_message(status)); return 4; }
  for (int i = 0; i < 5; ++i) for (int j = 0; j < 3; ++j) printf("%.17g\\n", y[i][j]);
  if (layer_run(&layer, &other, &output) != 4) return 5;
  layer_close(&layer);
  return 0;
}
"""


def run_cpp(folder: Path, text: str, library: str) -> list[float]:
    """The numbers that a program prints."""
    (folder / "main.cc").write_text(text)
    command = ["c++", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "main.cc", "-ldl", "-o", "main"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = Path(importlib.util.find_spec("tvm").origin).parent  # type: ignore[union-attr, arg-type]
    libraries = [site.parent / "tvm_ffi" / "lib" / "libtvm_ffi.so", site / "lib" / "libtvm_runtime.so"]
    ran = subprocess.run(
        ["./main", library, *map(str, libraries)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [float(word) for word in ran.stdout.split()]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_a_library_in_cpp(tmp_path: Path) -> None:
    layer.compile(X).export(tmp_path / "layer.so", header=tmp_path / "layer.h")
    found = run_cpp(tmp_path, CPP, "./layer.so")
    x = 0.1 * np.arange(5)[:, None] - 0.2 * np.arange(4)
    np.testing.assert_allclose(np.array(found).reshape(5, 3), np.tanh(x @ W + B), rtol=1e-12)


@relay
def chosen(x, least):
    kept = x[relay.sum(x, axis=1) > least]
    return relay.sum(x), kept * 2.0, relay.sum(kept)


CHOSEN = """
#include <cstdio>
#include "chosen.h"

int main(int count, char** arguments) {
  for (int n = 2; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 2; }
  chosen_program chosen;
  if (chosen_open(&chosen, arguments[1])) { puts(dlerror()); return 3; }
  double x[5][4];
  for (int i = 0; i < 5; ++i) for (int j = 0; j < 4; ++j) x[i][j] = i - j;
  int64_t shape[] = {5, 4};
  for (double least = -1; least < 20; least += 10) {
    double sum, kept_sum;
    int64_t words[2];
    chosen_array inputs[] = {{x, shape}, {&least, shape}};
    void* outputs[] = {&sum, &words[0], &words[1], &kept_sum};
    if (int status = chosen_run(&chosen, inputs, outputs)) { puts(chosen_message(status)); return 4; }
    chosen_output1 kept = chosen_read1(outputs);
    printf("%g %g %ld %ld\\n", sum, kept_sum, (long)kept.shape[0], (long)kept.shape[1]);
    for (int n = 0; n < kept.shape[0] * kept.shape[1]; ++n) printf("%g\\n", kept.data[n]);
  }
  chosen_close(&chosen);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_a_result_of_data_dependent_size_in_cpp(tmp_path: Path) -> None:
    chosen.compile(X, 0.5).export(tmp_path / "chosen.so", header=tmp_path / "chosen.h")
    text = (tmp_path / "chosen.h").read_text()
    assert "1 to 2: double [any][4] of data-dependent size: an int64_t each, which chosen_read1 reads" in text
    x = np.arange(5.0)[:, None] - np.arange(4.0)
    expected: list[float] = []
    for least in (-1.0, 9.0, 19.0):
        kept = x[x.sum(axis=1) > least]
        expected += [x.sum(), kept.sum(), *kept.shape, *(2 * kept).flat]
    assert run_cpp(tmp_path, CHOSEN, "./chosen.so") == expected


@relay
def trained(state, x, y, rate, count):
    w, b = state.value

    def loss(w, b):
        return relay.mean((x @ w + b - y) ** 2)

    value, (dw, db) = relay.value_and_grad(loss)(w, b)
    assert value < 1e6, "it diverges"
    state.value = w - rate * dw, b - rate * db
    count.value += 1
    return value


TRAINING = """
#include <cstdio>
#include "trained.h"

int main(int count, char** arguments) {
  for (int n = 2; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 2; }
  trained_program trained;
  if (trained_open(&trained, arguments[1])) { puts(dlerror()); return 3; }
  double x[5][4], y[5], rate = 0.125, value;
  for (int i = 0; i < 5; ++i) for (int j = 0; j < 4; ++j) x[i][j] = i - j;
  for (int i = 0; i < 5; ++i) y[i] = i;
  int64_t shape[] = {5, 4}, states[6], steps = trained_cell1(&trained);
  for (int64_t& state : states) state = trained_cell0(&trained);
  for (int n = 0; n < 4; ++n) {
    trained_array inputs[] = {{&states[5], shape}, {x, shape}, {y, shape}, {&rate, shape}, {&steps, shape}};
    void* output = &value;
    if (int status = trained_run(&trained, inputs, &output)) { puts(trained_message(status)); return 4; }
    printf("%.17g\\n", value);
    if (n == 2) *(double*)trained_content0(&trained, states[5], 1) = 1.0;
  }
  const double* w = (const double*)trained_content0(&trained, states[5], 0);
  for (int j = 0; j < 4; ++j) printf("%.17g\\n", w[j]);
  printf("%d\\n", *(const int*)trained_content1(&trained, steps, 0));
  *(double*)trained_content0(&trained, states[5], 1) = 1e9;
  trained_array inputs[] = {{&states[5], shape}, {x, shape}, {y, shape}, {&rate, shape}, {&steps, shape}};
  void* output = &value;
  puts(strstr(trained_message(trained_run(&trained, inputs, &output)), "it diverges") ? "1" : "0");
  trained_close(&trained);
  return 0;
}
"""


def training() -> tuple[Any, ...]:
    x = np.arange(5.0)[:, None] - np.arange(4.0)
    return relay.ref((np.zeros(4), np.zeros(()))), x, np.arange(5.0), np.float64(0.125), relay.ref(np.int32(0))


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_a_training_step_that_keeps_its_state_in_cpp(tmp_path: Path) -> None:
    trained.compile(*training()).export(tmp_path / "trained.so", header=tmp_path / "trained.h")
    assert "0: int64_t, a reference that trained_cell0 has made" in (tmp_path / "trained.h").read_text()
    state, x, y, rate, count = training()
    expected = []
    for n in range(4):
        expected.append(float(trained.interpret(state, x, y, rate, count)))
        if n == 2:
            state.value = state.value[0], np.float64(1.0)
    found = run_cpp(tmp_path, TRAINING, "./trained.so")
    np.testing.assert_allclose(found, [*expected, *np.asarray(state.value[0]), 4, 1], rtol=1e-9)


@relay
def slope(x, r, s):
    def product(x, r, s):
        r.value = r.value * x + s.value
        return r.value * s.value

    return relay.grad(product, wrt=0)(x, r, s)


SLOPES = """
#include <cstdio>
#include "slope.h"

int main(int count, char** arguments) {
  for (int n = 2; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 2; }
  slope_program slope;
  if (slope_open(&slope, arguments[1])) { puts(dlerror()); return 3; }
  double x = 1.25, value;
  int64_t none[] = {0}, cells[2];
  for (int64_t& cell : cells) cell = slope_cell0(&slope);
  for (int64_t cell : cells) *(double*)slope_content0(&slope, cell, 0) = 0.5;
  for (int n = 0; n < 4; ++n) {
    slope_array inputs[] = {{&x, none}, {cells, none}, {cells + n % 2, none}};
    void* output = &value;
    if (int status = slope_run(&slope, inputs, &output)) { puts(slope_message(status)); return 4; }
    printf("%.17g\\n", value);
  }
  slope_close(&slope);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_a_derivative_through_references_that_may_be_one_in_cpp(tmp_path: Path) -> None:
    r, s = relay.ref(np.float64(0.5)), relay.ref(np.float64(0.5))
    slope.compile(np.float64(1.25), r, s).export(tmp_path / "slope.so", header=tmp_path / "slope.h")
    expected = [float(slope.interpret(np.float64(1.25), r, s if n % 2 else r)) for n in range(4)]
    np.testing.assert_allclose(run_cpp(tmp_path, SLOPES, "./slope.so"), expected, rtol=1e-12)


def test_a_loaded_training_step_keeps_its_state(tmp_path: Path) -> None:
    trained.compile(*training()).export(tmp_path / "trained.so")
    loaded, expected = training(), training()
    step = relay.load(tmp_path / "trained.so")
    for _ in range(4):
        np.testing.assert_allclose(step(*loaded), trained.interpret(*expected), rtol=1e-12)
    np.testing.assert_allclose(loaded[0].value[0], expected[0].value[0], rtol=1e-12)
    assert int(loaded[4].value) == 4


@relay.data
class Pair:
    x: Tensor[Float, (2,)]


@relay
def scaled(xs: list[V], factor: Ref[F], nested: Ref[Ref[F]]):
    found = []
    total = 0.0
    for x in xs:
        if x[0] > 0.0:
            found.append((x * factor.value, total))
        total = total + x.sum()
    factor.value = factor.value + nested.value.value
    return found, total, relay.ref(total * 2.0)


SCALED = """
#include <cstdio>
#include "scaled.h"

int main(int count, char** arguments) {
  for (int n = 2; n < count; ++n)
    if (!dlopen(arguments[n], RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 2; }
  scaled_program self;
  if (scaled_open(&self, arguments[1])) { puts(dlerror()); return 3; }
  int64_t none[] = {0}, factor = scaled_cellFACTOR(&self), inner = scaled_cellFACTOR(&self);
  int64_t outer = scaled_cellOUTER(&self);
  *(double*)scaled_contentFACTOR(&self, factor, 0) = 2.0;
  *(double*)scaled_contentFACTOR(&self, inner, 0) = 0.5;
  *(int64_t*)scaled_contentOUTER(&self, outer, 0) = inner;
  for (int64_t length = 0; length < 4; ++length) {
    int64_t list = scaled_listLIST(&self, length), begin, size, reference;
    double total;
    for (int64_t i = 0; i < length; ++i)
      for (int j = 0; j < 3; ++j)
        ((double*)scaled_contentVECTOR(&self, scaled_itemLIST(&self, list + i), 0))[j] = (double)(i + j);
    scaled_array inputs[] = {{&list, none}, {&length, none}, {&factor, none}, {&outer, none}};
    void* outputs[] = {&begin, &size, &total, &reference};
    if (int status = scaled_run(&self, inputs, outputs)) { puts(scaled_message(status)); return 4; }
    printf("%ld %g %g %g\\n", (long)size, total, *(double*)scaled_contentFACTOR(&self, reference, 0),
           *(double*)scaled_contentFACTOR(&self, factor, 0));
    for (int64_t i = 0; i < size; ++i) {
      int64_t item = scaled_itemRESULT(&self, begin + i);
      const double* x = (const double*)scaled_contentPAIR(&self, item, 0);
      printf("%g %g %g %g\\n", x[0], x[1], x[2], *(double*)scaled_contentPAIR(&self, item, 1));
    }
  }
  scaled_close(&self);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_lists_and_references_in_cpp(tmp_path: Path) -> None:
    factor, nested = relay.ref(np.float64(2.0)), relay.ref(relay.ref(np.float64(0.5)))
    scaled.compile([np.ones(3)] * 2, factor, nested).export(tmp_path / "scaled.so", header=tmp_path / "scaled.h")
    text = (tmp_path / "scaled.h").read_text()
    (number,) = re.findall(r"0 and 1: int64_t each, a list that scaled_list(\d) has made", text)
    one, outer = re.findall(r"\d: int64_t, a reference that scaled_cell(\d) has made", text)
    (result,) = re.findall(r"its elements are scaled_item(\d)\(.., b \+ i\)", text)
    vector, pair = (
        re.findall(rf"reference, which scaled_content(\d) reads. \*/\nstatic inline int64_t scaled_item{n}\b", text)[0]
        for n in (number, result)
    )
    named = {"FACTOR": one, "OUTER": outer, "LIST": number, "VECTOR": vector, "RESULT": result, "PAIR": pair}
    source = re.sub("FACTOR|OUTER|LIST|VECTOR|RESULT|PAIR", lambda m: named[m.group()], SCALED)
    expected: list[float] = []
    for length in range(4):
        xs = [i + np.arange(3.0) for i in range(length)]
        found, total, made = scaled.interpret(xs, factor, nested)
        expected += (len(found), float(total), float(made.value), float(factor.value))
        for x, before in found:
            expected += (*np.asarray(x), float(before))
    np.testing.assert_allclose(run_cpp(tmp_path, source, "./scaled.so"), expected, rtol=1e-12)


def test_what_has_no_header(tmp_path: Path) -> None:
    @relay
    def summed(r: Ref[Tensor[Float, (Any_,)]]):
        return r.value.sum()

    @relay
    def picked(p: Pair):
        return p.x

    x = np.ones(2, np.float32)
    for function, argument, message in (
        (summed, relay.ref(x), "a reference or a list holds tensors of data-dependent size"),
        (picked, Pair(x), "Pair is a data type of this program; pass tensors and tuples"),
    ):
        with pytest.raises(CompileError, match=message):
            function.compile(argument).export(tmp_path / "it.so", header=tmp_path / "it.h")
    assert not (tmp_path / "it.so").exists()


def test_errors_of_a_loaded_program_have_their_classes(tmp_path: Path) -> None:
    """The class of an error is in the library: words of the user's texts are not taken for that of another one."""

    @relay.relay
    def checked(x, i):
        assert x[0] < 5.0, "the index out of range"
        if x[0] < 0.0:
            raise ValueError("a negative number")
        return x[i]

    x = np.arange(3.0)
    made = checked.compile(x, np.int32(0))
    made.export(tmp_path / "checked.so")
    loaded = relay.load(tmp_path / "checked.so")
    for program in (made, loaded):
        with pytest.raises(ValueError, match="error: a negative number"):
            program(x - 1, np.int32(0))
        with pytest.raises(IndexError, match="out of range"):
            program(x, np.int32(7))
        with pytest.raises(relay.ExecutionError, match="error: the index out of range") as caught:
            program(x + 9, np.int32(0))
        assert not isinstance(caught.value, IndexError)
