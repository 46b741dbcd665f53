"""The command `show`: stages, pages and graphs of functions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

import relay
from relay.cli import main


def test_show_keeps_annotated_sizes_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sizes.py"
    path.write_text(SIZES, encoding="utf-8")
    shown = "entry fn f(%x: Tensor[float32, (n, m)], %y: (Tensor[float32, (m,)], Tensor[float32, (2*n, 3)]))"
    for stage in ("core", "optimized", "fused"):
        assert main(["show", f"{path}:f", "--stage", stage]) == 0
        assert shown in capsys.readouterr().out
    assert main(["show", f"{path}:g", "--stage", "core"]) == 2
    assert "annotated with s, which stands for any shape: give --types" in capsys.readouterr().err


SIZES = """
from relay import Float, Tensor, dims, relay, shape_var

n, m = dims("n m")
s = shape_var("s")

@relay
def f(x: Tensor[Float, (n, m)], y: tuple[Tensor[Float, (m,)], Tensor[Float, (2 * n, 3)]]):
    return (x + y[0]).sum() * y[1].sum()

@relay
def g(x: Tensor[Float, s]):
    return x
"""


def test_show_kernels_for_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layer.py"
    path.write_text(LAYER, encoding="utf-8")
    types = "Tensor[float32, (512, 512)], Tensor[float32, (512, 512)], Tensor[float32, (512,)]"
    command = ["show", f"{path}:layer", "--target", "cuda", "--types", types]
    assert main([*command, "--stage", "kernels"]) == 0
    shown = capsys.readouterr().out
    assert "tiled_product: 512 x 512 over 512, tiles of " in shown and "64 blocks of 256 threads" in shown
    assert "or cuBLASLt, where it is installed" in shown
    assert "persistent: 1 steps, " in shown and "1 blocks of 512 threads" in shown
    assert main([*command, "--stage", "cuda"]) == 0
    assert "// persistent0: persistent, " in capsys.readouterr().out
    assert main([*command, "--stage", "tir"]) == 2
    assert "has the stages typed, core, optimized, fused, kernels and cuda, found tir" in capsys.readouterr().err


def test_show_the_library_of_convolutions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layer.py"
    path.write_text(CONVOLUTION, encoding="utf-8")

    def shown(weight: str) -> str:
        types = f"Tensor[float32, (8, 32, 32, 64)], Tensor[float32, ({weight})]"
        command = ["show", f"{path}:layer", "--target", "cuda", "--stage", "kernels", "--types", types]
        assert main(command) == 0
        return capsys.readouterr().out

    assert "or cuDNN, where it is installed and the convolution is large enough: with channels last, " in shown(
        "3, 3, 64, 64"
    )
    assert "not cuDNN: as a product it has fewer than 32 rows, columns or terms" in shown("3, 3, 64, 8")


CONVOLUTION = """
import relay

@relay.relay
def layer(x, w):
    return relay.conv2d(x, w, layout="NHWC")
"""


LAYER = """
import relay

@relay.relay
def layer(x, w, b):
    y = relay.relu(x @ w + b)
    for _ in range(3):
        b = relay.tanh(b)
    return y, b
"""


def test_show_every_stage(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {}
    for stage in ("typed", "core", "batched", "optimized", "fused", "tir"):
        assert main(["show", f"{python}:g", "--stage", stage]) == 0
        texts[stage] = capsys.readouterr().out
        if stage not in ("typed", "tir"):
            relay.parse(texts[stage])
    assert "grad{" not in texts["core"]
    assert "fn fused_" in texts["fused"] and "fn fused_" not in texts["optimized"]
    assert "T.prim_func" in texts["tir"]
    assert main(["show", f"{python}:layer", "--stage", "core"]) == 2
    assert "the parameter x of layer has no annotated type: give --types or --args" in capsys.readouterr().err
    types = "Tensor[float32, (2, 3)], Tensor[float32, (3, 2)]"
    assert main(["show", f"{python}:layer", "--stage", "core", "--types", types]) == 0
    assert "Tensor[float32, (2, 2)]" in capsys.readouterr().out


def test_show_tells_which_recursions_are_evaluated_by_levels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trees.py"
    path.write_text(TREES, encoding="utf-8")
    assert main(["show", f"{path}:states", "--stage", "batched"]) == 0
    shown = capsys.readouterr().out
    notes = [line for line in shown.splitlines() if line.startswith("#")]
    assert notes[:3] == [
        "# trees.py:14: the recursion state is evaluated level by level, unless levels are thin",
        "# trees.py:22: the recursion depth stays: it has no product of arrays of some size",
        "# trees.py:35: the recursion nested stays: what a call passes on depends on the result of another one",
    ]
    assert "trees.py:35: the recursion nested_1 stays" in notes[3]  # the outermost call, with an integer
    assert all("states" not in note and "trees.py:39: the loop" in note for note in notes[4:])
    relay.parse(shown)


TREES = """
import numpy as np
from relay import Float32, Tensor, data, relay

@data
class Tree:
    class Leaf:
        row: Tensor[Float32, (32,)]
    class Node:
        left: "Tree"
        right: "Tree"

@relay
def state(tree, w):
    match tree:
        case Tree.Leaf(row):
            return np.tanh(row @ w)
        case Tree.Node(left, right):
            return np.tanh((state(left, w) + state(right, w)) @ w)

@relay
def depth(tree: Tree) -> int:
    match tree:
        case Tree.Leaf(_):
            return 0
        case Tree.Node(left, right):
            return 1 + max(depth(left), depth(right))

@relay
def nested(tree, w, n):
    match tree:
        case Tree.Leaf(row):
            return (row @ w).sum() * n
        case Tree.Node(left, right):
            return nested(left, w, nested(right, w, n)) * 2.0

@relay
def states(trees: list[Tree], w: Tensor[Float32, (32, 32)]):
    return np.stack([state(tree, w) * depth(tree) + nested(tree, w, 1) for tree in trees])
"""


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--types", "Tensor[float32, (2, 3)]"], "needs 2 types, one for each argument, found 1"),
        (["--types", "Tensor[float33, (2, 3)]"], "--types: "),
        (["--stage", "tir", "--dot"], "a graph is drawn of the stages typed to fused"),
        (["--stage", "tir", "--html"], "the page shows all stages from typed to fused: leave out --stage"),
        (["--args", "missing.npz"], "cannot read missing.npz"),
    ],
)
def test_show_refuses_in_one_line(
    python: str, extra: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", f"{python}:f", *extra]) == 2
    error = capsys.readouterr().err
    assert error.startswith("relay show: ") and message in error and error.count("\n") == 1


class _Page(HTMLParser):
    """The rows of a page, by their ids: the text and the links of each; all open tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.texts: dict[str, str] = {}
        self.links: dict[str, list[tuple[str, str]]] = {}
        self._row = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag != "meta":
            self.open.append(tag)
        if found.get("id"):
            self.ids.append(found["id"] or "")
            self._row = found["id"] or ""
            self.texts[self._row], self.links[self._row] = "", []
        if "href" in found:
            self.links.setdefault(self._row, []).append((found["href"] or "", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self._row] = self.texts.get(self._row, "") + data


def test_the_page_leads_from_bindings_to_the_source_and_through_the_passes(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", f"{python}:f", "--html", "-o", str(tmp_path / "f.html")]) == 0
    html = (tmp_path / "f.html").read_text()
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")
    page = _Page()
    page.feed(html)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    targets = [href for links in page.links.values() for href, _ in links]
    assert targets and all(href[1:] in page.ids for href in targets)
    # From the product in the last stage back to the first, and to its line.
    last = max((i for i in page.ids if re.fullmatch(r"s\d+-\d+", i)), key=lambda i: int(i[1 : i.index("-")]))
    stage = int(last[1 : last.index("-")])
    assert stage >= 4
    row = next(i for i in page.ids if i.startswith(f"s{stage}-") and "= tanh(" in page.texts[i])
    for number in range(stage - 1, -1, -1):
        row = next(h[1:] for h, _ in page.links[row] if h.startswith(f"#s{number}-"))
        assert "tanh(" in page.texts[row]
    place = next(h[1:] for h, _ in page.links[row] if h.startswith("#l"))
    assert "relay.tanh(x @ w)" in page.texts[place]
    assert any(href.startswith("#s0-") for href, _ in page.links[place])
    assert "removed:" in html


def test_graphs(python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{python}:f", "--stage", "optimized", "--dot"]) == 0
    dot = capsys.readouterr().out
    nodes = dict(re.findall(r'^ +(n\d+) \[label="(.*?)"', dot, re.MULTILINE))
    by_word = {label.split(" = ")[-1].partition("(")[0]: number for number, label in nodes.items()}
    assert f"{by_word['matmul']} -> {by_word['tanh']} [" in dot
    assert f"{by_word['multiply']} -> {by_word['sum']} [" in dot
    assert main(["show", f"{python}:f", "--stage", "optimized", "--svg"]) == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    boxes = [e for e in root.iter() if e.tag.endswith("rect")]
    lines = [e for e in root.iter() if e.tag.endswith("line")]
    assert len(boxes) == len(re.findall(r"^ +n\d+ \[label", dot, re.MULTILINE)) and len(lines) == dot.count("->")
    for line in lines:
        assert int(line.get("y1", "0")) < int(line.get("y2", "0"))  # what is read stands above


def test_shown_programs_are_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with large constants; of a program for all types at once the text says that it is none."""
    path, out = tmp_path / "model.py", str(tmp_path / "out.relay")
    path.write_text("""
import numpy as np
import relay as R
from relay import relay, Float, Tensor

WEIGHTS = np.arange(100, dtype=np.float32)

@relay
def f(x: Tensor[Float, (100,)]):
    return (x * WEIGHTS).sum()

@relay
def g(x):
    return x * 2

df, dg = R.grad(f), R.grad(g)
""")
    for name in ("f", "df"):
        for stage in ("typed", "core", "optimized", "fused"):
            assert main(["show", f"{path}:{name}", "--stage", stage, "-o", out]) == 0
            relay.parse(Path(out).read_text())
    for name in ("g", "dg"):
        assert main(["show", f"{path}:{name}"]) == 0
        assert capsys.readouterr().out.startswith("# for all types at once: --types gives")


def test_what_leaves_a_block_goes_back_to_its_construct(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text("""
from relay import relay, Float, Tensor

@relay
def f(x: Tensor[Float, (3,)], c: bool):
    if c:
        return x
    for i in range(3):
        if x.sum() > 1.0:
            y = x * 2.0
        else:
            y = x + 1.0
        x = y
    return x
""")
    assert main(["show", f"{path}:f", "--stage", "core", "--dot"]) == 0
    dot = capsys.readouterr().out
    nodes = dict(re.findall(r'^ +(n\d+) \[label="(.*?)"', dot, re.MULTILINE))
    by_word = {label.split(" = ")[-1].partition("(")[0]: number for number, label in nodes.items()}
    inner = next(number for number, label in nodes.items() if label == "y = if")
    loop, parameter = by_word["loop"], by_word["x"]
    for word in ("multiply", "add"):
        assert f"{by_word[word]} -> {inner} [label=" in dot
    assert f"{by_word['greater']} -> {inner} [style=dotted" in dot
    assert re.search(rf"  {inner} -> {parameter} \[label=.*style=dashed", dot), "the next round begins with it"
    assert f"{parameter} -> {loop} [" in dot and f"{loop} -> {by_word['return']} [" in dot
    assert main(["show", f"{path}:f", "--stage", "core", "--svg"]) == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert sum(e.tag.endswith("path") for e in root.iter()) == dot.count("dashed")
