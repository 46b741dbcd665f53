"""`f.plot()`: every binding of a program is drawn, in the boxes of its constructs; pictures, and files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import relay
from relay import Float64, Tensor
from relay.ir.expr import Function
from relay.ir.traverse import walk
from relay.text.display.graph import Cluster, Node, graph

DOT = shutil.which("dot")
needs_dot = pytest.mark.skipif(DOT is None, reason="there is no Graphviz")


@relay
def nested(x: Tensor[Float64, (3,)], c: bool):
    if c:
        return x
    for _ in range(3):
        if x.sum() > 1.0:  # noqa: SIM108
            y = x * 2.0
        else:
            y = relay.sin(x)
        x = y
    return x


@relay
def factorial(n: int):
    if n < 2:
        return 1
    return n * factorial(n - 1)


@relay
def with_closure(x: Tensor[Float64, (3,)], k: Tensor[Float64, ()]):
    def scaled(y):
        return y * k

    return (scaled(x) + relay.sin(scaled(x))).sum()


def edges(source: str) -> dict[tuple[str, str], str]:
    """The edges of a drawing between labels, with their attributes."""
    labels = dict(re.findall(r'^ *(n\d+) \[label="((?:[^"\\]|\\.)*)"', source, re.M))
    found = re.findall(r"(n\d+) -> (n\d+)(?: \[(.*)\])?;", source)
    return {(labels[a], labels[b]): attributes for a, b, attributes in found}


def cluster_of(source: str, label: str) -> list[str]:
    """The labels of the boxes around a node, the outermost first."""
    around: list[str] = []
    pending = False
    for line in source.split("\n"):
        if "subgraph" in line:
            pending = True
        elif pending:
            around.append(re.search('label="(.*?)"', line)[1])
            pending = False
        elif line.strip() == "}" and around:
            around.pop()
        elif f'label="{label}"' in line and "->" not in line:
            return list(around)
    raise AssertionError(label)


def test_constructs_are_boxes_and_edges_have_types() -> None:
    source = nested.plot().source
    assert cluster_of(source, "y = sin(x)") == ["fn nested", "loop for__", "if", "else"]
    assert cluster_of(source, "y = multiply(x, 2.0f64)") == ["fn nested", "loop for__", "if", "then"]
    found = edges(source)
    assert found["x", "y = sin(x)"] == 'label="Tensor[float64, (3,)]"'
    assert 'label="Tensor[float64, (3,)]"' in found["y = sin(x)", "y = if"]
    assert "dotted" in found["condition = greater(sum_result, 1.0f64)", "y = if"]
    assert "dashed" in found["y = if", "x"]
    assert ("x", "return") in found and ("x = loop", "return") in found


def test_functions_are_referenced() -> None:
    found = edges(factorial.plot().source)
    assert "dashed" in found["factorial_result = @factorial(difference)", "n"]
    source = with_closure.plot().source
    assert cluster_of(source, "product = multiply(y, k)") == ["fn with_closure", "fn scaled"]
    found = edges(source)
    assert found["k", "product = multiply(y, k)"] == 'label="Tensor[float64, ()]"', "what it captures"
    assert found["scaled = closure", "scaled_result = scaled(x)"].startswith('label="fn(')


@relay
def even(n: int):
    def is_even(k):
        if k == 0:
            return True
        return is_odd(k - 1)

    def is_odd(k):
        if k == 0:
            return False
        return is_even(k - 1)

    return is_even(n)


@relay.data
class Shape:
    class Circle:
        r: Tensor[Float64, ()]

    class Box:
        a: Tensor[Float64, ()]
        b: Tensor[Float64, ()]


@relay
def area(s: Shape):
    match s:
        case Shape.Circle(r):
            return 3.0 * r * r
        case Shape.Box(a, b):
            return a * b


@relay
def root(x: Tensor[Float64, ()]):
    g = x
    while relay.abs(g * g - x) > 1e-9:
        g = 0.5 * (g + x / g)
    return g


PROGRAMS = (nested, factorial, with_closure, even, area, root, relay.grad(with_closure))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("stage", ["typed", "core", "optimized", "kernels"])
def test_every_binding_is_drawn(f: relay.RelayFunction, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    monkeypatch.setattr(
        "relay.compilation.drawings.graph", lambda m, *a: drawn.append((m, graph(m, *a))) or drawn[-1][1]
    )
    source = f.plot(stage=stage).source
    ((module, found),) = drawn
    functions = [function for function in module.functions.values() if isinstance(function, Function)]
    count = sum(1 for function in functions for _ in walk(function.body))
    nodes = [node for cluster in found.functions for node in cluster.nodes()]
    assert sum(n.kind in ("operation", "construct", "call") for n in nodes) == count
    assert len({n.number for n in nodes}) == len(nodes) == len(re.findall(r"^ *n\d+ \[label", source, re.M))
    known = {n.number for n in nodes}
    assert all(e.source in known and e.target in known for e in found.edges)
    assert all(e.source < e.target for e in found.edges if e.kind in ("value", "condition"))
    if DOT is not None and stage == "core":
        assert f.plot(stage=stage).svg().startswith("<svg")


def test_derivatives_stand_beside() -> None:
    drawing = with_closure.plot(derivative=True)
    assert cluster_of(drawing.source, "t = cos(product)")[0] == "gradient of with_closure"
    assert cluster_of(drawing.source, "sum = add(scaled_result, sin_result)")[0] == "with_closure"
    names = re.findall(r"(?:subgraph |^ *)((?:cluster_|n)\w+) (?:\{|\[)", drawing.source, re.M)
    assert len(names) == len(set(names)) and "seed" not in drawing.source
    assert "seed" in nested.plot(derivative=True, stage="core").source, "its result is an array"


def test_arguments_give_types() -> None:
    f = relay(lambda x, k: x * k)
    assert "Tensor[float32, (2, 5)]" in f.plot(np.ones((2, 5), np.float32), k=np.float32(2)).source
    with pytest.raises(relay.FrontendError, match=r"no stage 'fast'(.|\n)*'typed', 'core', 'optimized', 'kernels'"):
        f.plot(np.ones(2), 2.0, stage="fast")
    with pytest.raises(relay.RelayError):
        f.plot()


def test_texts_are_quoted() -> None:
    f = relay.from_source('def f(x):\n    assert x > 0.0, "say \\"no\\" \\\\ {<b>}"\n    return x\n')
    source = f.plot(1.0).source
    assert source.count('"') % 2 == 0
    if DOT is not None:
        text = f.plot(1.0).svg()
        ElementTree.fromstring(text)
        assert "<b>" not in text


@needs_dot
def test_files(tmp_path: Path) -> None:
    drawing = nested.plot()
    starts = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "dot": b"digraph"}
    for form, start in starts.items():
        assert drawing.save(tmp_path / f"f.{form}").read_bytes().startswith(start)
    root = ElementTree.fromstring(drawing.svg())
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert titles.count("n1->n3") <= 1 and len(titles) > 10
    bundle = drawing._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg") and bundle["text/plain"].startswith("<drawing of nested")


def test_wrong_files(tmp_path: Path) -> None:
    drawing = nested.plot()
    with pytest.raises(relay.FrontendError, match=r"'f.gif' has the suffix .gif"):
        drawing.save(tmp_path / "f.gif")
    with pytest.raises(relay.FrontendError, match="'f' has no suffix"):
        drawing.save(tmp_path / "f")
    with pytest.raises(relay.FrontendError, match="cannot write"):
        drawing.save(tmp_path / "nowhere" / "f.dot")


def test_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    drawing = nested.plot()
    with pytest.raises(relay.ExecutionError) as caught:
        drawing.save(tmp_path / "f.svg")
    assert "Graphviz's `dot`, which is not installed" in str(caught.value) and "apt install graphviz" in str(
        caught.value
    )
    assert drawing.save(tmp_path / "f.dot").read_text().startswith("digraph")
    bundle = drawing._repr_mimebundle_()
    assert list(bundle) == ["text/plain"] and "apt install graphviz" in bundle["text/plain"]


def long_program(count: int) -> relay.RelayFunction:
    lines = [f"    x{i + 1} = relay.sin(x{i}) * x{max(0, i - 7)}" for i in range(count // 2)]
    return relay.from_source("def f(x0):\n" + "\n".join(lines) + f"\n    return x{count // 2}\n", {"relay": relay})


def test_two_thousand_bindings() -> None:
    sources = {count: long_program(count).plot(1.0).source for count in (1000, 2000)}
    assert 1.9 < len(sources[2000]) / len(sources[1000]) < 2.2
    assert sources[2000].count("->") < 2 * sources[1000].count("->") + 10
    root = ElementTree.fromstring(long_program(2000).plot(1.0).svg())
    boxes = [float(e.get("y")) for e in root.iter() if e.tag.endswith("rect")]
    assert len(boxes) == 2002 and all(
        float(e.get("y1")) < float(e.get("y2")) for e in root.iter() if e.tag.endswith("line")
    )


def depth(cluster: Cluster) -> int:
    return 1 + max((depth(m) for m in cluster.members if not isinstance(m, Node)), default=0)


def test_nested_loops() -> None:
    text = "def f(x):\n"
    for level in range(8):
        text += f"{'    ' * (level + 1)}for i{level} in range(2):\n"
    text += f"{'    ' * 9}x = x * 2.0\n    return x\n"
    f = relay.from_source(text)
    (cluster,) = graph(f.typed(np.float64(1.0))).functions
    assert depth(cluster) == 9
