"""The language server, by a scripted client over standard input and output."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from cli.language_client import Client, language_server, place_of

from relay.cli import main
from relay.cli.lsp.analysis import Analyzer
from relay.cli.lsp.documents import Text

TEXT = '''\
import numpy as np
import relay as rl
from relay import Float, Tensor, relay

W = np.ones((4, 5), dtype=np.float32)


@rl.data
class Point:
    x: Tensor[Float, ()]
    y: Tensor[Float, (2,)]


@relay
def layer(x: Tensor[Float, (3, 4)], p: Point):
    """A layer.

    With more text.
    """
    h = rl.tanh(x @ W)
    q = p.x + 1.0
    return h.sum(axis=0) * q


@relay
def product(a, b):
    c = a * b
    return c


@relay
def caller(x: Tensor[Float, (3, 4)]):
    d = product(x, x)
    pair = (d, d.shape[0])
    for row in x:
        d = d + row
    return d if x.sum() > 0.0 else pair[0]


@relay
def free(u, v):
    w = u + v
    return w


free(np.ones((2, 7), np.float32), np.float32(1.5))
'''
EVERYWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with language_server(tmp_path_factory.mktemp("workspace").as_uri()) as client:
        yield client


@pytest.fixture(scope="module")
def model(client: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = (tmp_path_factory.mktemp("open") / "model.py").as_uri()
    client.open(uri, TEXT)
    assert client.diagnostics(uri, 1) == []
    return uri


def shown(client: Client, uri: str, mark: str, text: str = TEXT, offset: int = 0) -> str:
    line, character = place_of(text, mark)
    found = client.at("hover", uri, line, character + offset)
    return "" if found is None else found["contents"]["value"]


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("@ W", "x @ W: Tensor[float32, (3, 5)]"),
        ("W)", "W: Tensor[float32, (4, 5)] (constant)"),
        ("h = rl", "h: Tensor[float32, (3, 5)]"),
        ("x + 1.0", "p.x: Tensor[float32, ()]"),
        ("p: Point", "p: Point"),
        ("* q", "h.sum(axis=0) * q: Tensor[float32, (5,)]"),
        ("q\n\n\n@relay\ndef product", "q: Tensor[float32, ()]"),
        ("layer(x", "layer: fn(Tensor[float32, (3, 4)], Point) -> Tensor[float32, (5,)]"),
        ("pair = ", "pair: (Tensor[float32, (3, 4)], int (3))"),
        ("d.shape[0]", "d: Tensor[float32, (3, 4)]"),
        ("row in", "row: Tensor[float32, (4,)]"),
        ("> 0.0", "x.sum() > 0.0: Tensor[bool, ()]"),
        ("Point:", "data Point"),
    ],
)
def test_hovering_tells_the_type_of_each_expression(client: Client, model: str, mark: str, told: str) -> None:
    assert told in shown(client, model, mark)


def test_hovering_tells_symbolic_types_and_those_of_calls(client: Client, model: str) -> None:
    within = shown(client, model, "c = a")
    assert "c: Tensor[bt, " in within and "In calls:\n\n- `Tensor[float32, (3, 4)]`" in within
    assert "- `Tensor[float32, (2, 7)]`" in shown(client, model, "w = u")
    assert "product: forall (bt: BaseType)" in shown(client, model, "product(x")


def test_hovering_over_an_operator_tells_its_signature_and_what_it_does(client: Client, model: str) -> None:
    found = shown(client, model, "rl.tanh", offset=4)
    assert "relay.tanh(x)" in found and "Type `T:float -> T`" in found and "Hyperbolic tangent." in found
    assert "relay.sum(x, axis=None, keepdims=False)" in shown(client, model, "h.sum", offset=3)
    assert client.at("hover", model, 3, 0) is None


def test_hints_tell_what_is_not_annotated(client: Client, model: str) -> None:
    found = client.request("textDocument/inlayHint", textDocument={"uri": model}, range=EVERYWHERE)
    lines = TEXT.split("\n")
    texts = {lines[h["position"]["line"]][: h["position"]["character"]] + h["label"] for h in found}
    assert "    h: Tensor[float32, (3, 5)]" in texts
    assert "def layer(x: Tensor[Float, (3, 4)], p: Point) -> Tensor[float32, (5,)]" in texts
    assert "    for row: Tensor[float32, (4,)]" in texts
    assert "def product(a: Tensor[bt, s1]" in texts
    assert not any(text.startswith("def layer(x: T") and text.endswith("(3, 4)]") for text in texts)


def test_definitions_lead_to_names_and_to_pages_of_operators(client: Client, model: str) -> None:
    def found(mark: str, what: str = "definition") -> tuple[str, int]:
        place = client.at(what, model, *place_of(TEXT, mark))
        return place["uri"], place["range"]["start"]["line"]

    assert found("W)") == (model, place_of(TEXT, "W =")[0])
    assert found("product(x") == (model, place_of(TEXT, "def product")[0])
    assert found("h.sum") == (model, place_of(TEXT, "h =")[0])
    line, character = place_of(TEXT, "rl.tanh")
    place = client.at("definition", model, line, character + 4)
    page = pathlib.Path(place["uri"].removeprefix("file://")).read_text()
    assert page.split("\n")[place["range"]["start"]["line"]] == "### tanh"
    place = client.at("implementation", model, line, character + 4)
    assert place["uri"].endswith("relay/ops/elementwise/elementary.py")
    assert client.at("definition", model, *place_of(TEXT, "+ 1.0")) is None


def labels(client: Client, uri: str, line: int, character: int) -> dict[str, str | None]:
    return {i["label"]: i.get("detail") for i in client.at("completion", uri, line, character)["items"]}


def test_completion_of_what_stands_in_the_file(client: Client, model: str) -> None:
    line, character = place_of(TEXT, "rl.tanh")
    operators = labels(client, model, line, character + 4)
    assert operators["matmul"] == "matmul(x, y)  T:number, T -> T"
    assert "grad" in operators and not any(name.startswith("_") for name in operators)
    line, character = place_of(TEXT, "p.x")
    assert labels(client, model, line, character + 2) == {"x": "Tensor[float32, ()]", "y": "Tensor[float32, (2,)]"}
    names = labels(client, model, line, character)
    assert names["h"] == "Tensor[float32, (3, 5)]" and "layer" in names and "W" in names and "c" not in names
    line, character = place_of(TEXT, "np.ones")
    numpy = labels(client, model, line, character + 3)
    assert numpy["linspace"] is not None and numpy["linspace"].startswith("np.linspace(start, stop")
    assert "savez" not in numpy  # which programs cannot call


def test_completion_and_parameters_in_code_that_is_half_typed(client: Client, model: str) -> None:
    uri = model.replace("model.py", "typed.py")
    text = TEXT.replace("    d = product(x, x)\n", "    d = x + product(x, x)\n    e = rl.conv2d(x, d.\n")
    client.open(uri, text)
    line, character = place_of(text, "d.\n")
    assert "shape" in labels(client, uri, line, character + 2)
    found = client.at("signatureHelp", uri, line, character + 2)
    assert found["signatures"][0]["label"].startswith("conv2d(x, weight") and found["activeParameter"] == 1
    client.notify("textDocument/didClose", textDocument={"uri": uri})


def test_the_outline(client: Client, model: str) -> None:
    found = client.request("textDocument/documentSymbol", textDocument={"uri": model})
    assert [s["name"] for s in found] == ["W", "Point", "layer", "product", "caller", "free"]
    assert [s["name"] for s in found[1]["children"]] == ["x", "y"]
    assert found[2]["detail"].startswith("fn(")


WRONG = """\
from relay import Float, Tensor, relay
import relay as rl

@relay
def inner(a, b):
    return a @ b

@relay
def wrong(x: Tensor[Float, (3, 4)], y: Tensor[Float, (5,)]):
    return rl.tanhh(x) + (x + y)

@relay
def outer(x: Tensor[Float, (3, 4)]):
    return inner(x, x)

@relay
def fine(x: Tensor[Float, (3, 4)]):
    z = x * 2.0
    return z
"""


def test_errors_have_places_labels_and_help(client: Client, model: str) -> None:
    uri = model.replace("model.py", "wrong.py")
    client.open(uri, WRONG)
    found = {d["code"] + str(d["range"]["start"]["line"]): d for d in client.diagnostics(uri, 1)}
    name, shapes, called = found["TypeCheckError9"], found["ShapeError9"], found["ShapeError5"]
    line, character = place_of(WRONG, "x + y)")
    assert shapes["range"] == {
        "start": {"line": line, "character": character},
        "end": {"line": line, "character": character + 5},
    }
    assert "cannot be broadcast together" in shapes["message"] and shapes["severity"] == 1
    assert called["relatedInformation"][0]["message"] == "in this call of inner"
    assert called["relatedInformation"][0]["location"]["range"]["start"]["line"] == place_of(WRONG, "inner(x")[0]
    assert "help: did you mean 'tanh'?" in name["message"]
    document = {"uri": uri}
    fixes = client.request(
        "textDocument/codeAction", textDocument=document, range=name["range"], context={"diagnostics": [name]}
    )
    edit = fixes[0]["edit"]["changes"][uri][0]
    line, character = place_of(WRONG, "tanhh")
    assert edit["newText"] == "tanh" and edit["range"]["start"] == {"line": line, "character": character}
    assert edit["range"]["end"] == {"line": line, "character": character + 5}
    assert "Tensor[float32, (3, 4)]" in shown(client, uri, "x + y)", WRONG)  # also in functions with mistakes


EFFECTS = """\
import numpy as np
import relay
from relay import Float, Tensor


@relay.relay
def noisy(x: Tensor[Float, (3,)]):
    return x + relay.rng.normal(x.shape)


@relay.relay
def layer(x: Tensor[Float, (3,)]):
    return noisy(x) * relay.param("scale", (3,), relay.ones)


layer(np.zeros(3, np.float32))
noisy(np.zeros(3, np.float32))
relay.rng.handle(noisy)(relay.random.key(0), np.zeros(3, np.float32))
"""


def test_effects_are_in_types_and_calls_without_a_handler_are_errors(client: Client, model: str) -> None:
    uri = model.replace("model.py", "effects.py")
    client.open(uri, EFFECTS)
    assert "-> Tensor[float32, (3,)] ! {param, rng}" in shown(client, uri, "layer(x", EFFECTS)
    _check_effects(client.diagnostics(uri, 1), place_of(EFFECTS, "layer(np")[0])
    client.change(uri, 2, {"text": "\n" + EFFECTS})  # no function is checked again
    _check_effects(client.diagnostics(uri, 2), place_of(EFFECTS, "layer(np")[0] + 1)


def _check_effects(found: list[dict[str, Any]], line: int) -> None:
    assert [d["range"]["start"]["line"] for d in found] == [line, line + 1]
    assert (
        "layer has parameters" in found[0]["message"] and "relay.params.apply(layer)(params, ..)" in found[0]["message"]
    )
    assert "noisy draws with an implicit key" in found[1]["message"]


def test_half_typed_code_leaves_the_rest_as_it_was(client: Client, model: str) -> None:
    uri = model.replace("model.py", "half.py")
    client.open(uri, WRONG)
    before = len(client.diagnostics(uri, 1))
    line, character = place_of(WRONG, "x * 2.0")
    place = {"line": line, "character": character}
    end = {"line": line, "character": character + 7}
    client.change(uri, 2, {"range": {"start": place, "end": end}, "text": "rl.tanh(x, ["})
    found = client.diagnostics(uri, 2)
    assert len(found) == before + 1
    syntax = [d for d in found if d["code"] == "SyntaxError"]
    assert len(syntax) == 1 and syntax[0]["range"]["start"]["line"] == line
    assert "fn(" in shown(client, uri, "inner", WRONG) or "forall" in shown(client, uri, "inner", WRONG)
    end = {"line": line, "character": character + 12}
    client.change(uri, 3, {"range": {"start": place, "end": end}, "text": "x * 2.0"})
    assert len(client.diagnostics(uri, 3)) == before


def test_positions_count_units_of_utf_16_also_with_tabs_and_carriage_returns(client: Client, model: str) -> None:
    text = (
        "from relay import Float, Tensor, relay\r\n\r\n@relay\r\n"
        "def f(x: Tensor[Float, (3,)], y: Tensor[Float, (4,)]):\r\n"
        "\tassert x.shape[0] == 3, '\N{ROCKET}\N{ROCKET}'; größe = x + y\r\n\treturn größe\r\n"
    )
    uri = model.replace("model.py", "unicode.py")
    client.open(uri, text)
    (found,) = client.diagnostics(uri, 1)
    line, character = place_of(text, "x + y")
    assert found["range"]["start"] == {"line": line, "character": character}
    assert found["range"]["end"] == {"line": line, "character": character + 5}
    rocket = place_of(text, "\N{ROCKET}'")[1]
    change = {"start": {"line": line, "character": rocket}, "end": {"line": line, "character": rocket + 2}}
    client.change(uri, 2, {"range": change, "text": "\N{ROCKET}é"})
    (found,) = client.diagnostics(uri, 2)
    assert found["range"]["start"] == {"line": line, "character": character + 1}


def test_nothing_of_a_document_is_executed(client: Client, model: str, tmp_path: pathlib.Path) -> None:
    made = tmp_path / "made"
    text = (
        f"import os, pathlib\npathlib.Path({str(made)!r}).write_text('run')\nos._exit(3)\n" + TEXT + "\nexit()\n"
        f"@relay\ndef late(x=pathlib.Path({str(made)!r}).write_text('run')):\n    return x\n"
    )
    uri = (tmp_path / "hostile.py").as_uri()
    client.open(uri, text)
    client.diagnostics(uri, 1)
    assert "Tensor[float32, (3, 5)]" in shown(client, uri, "h = rl", text)
    assert not os.path.exists(made)


@pytest.mark.parametrize(
    "text",
    [
        "\0\x01\x02\udcff",
        "(" * 5000,
        "x = " + "-" * 100_000 + "1",
        "x = 9**9**9**9\ny = [0] * 10**12\n",
        "@relay\n@relay\n",
        "x" * (2**21 + 1),
        "def f(:\n" * 300,
    ],
    ids=["binary", "parentheses", "minus", "power", "decorators", "huge", "definitions"],
)
def test_strange_documents_do_no_harm(client: Client, model: str, tmp_path: pathlib.Path, text: str) -> None:
    uri = (tmp_path / "strange.py").as_uri()
    client.open(uri, text)
    client.diagnostics(uri, 1)
    for method in ("hover", "definition", "completion", "signatureHelp", "documentSymbol"):
        client.at(method, uri, 0, 1)
        client.at(method, uri, 7000, 7000)
    client.notify("textDocument/didClose", textDocument={"uri": uri})
    assert "Tensor[float32, (3, 5)]" in shown(client, model, "h = rl")


def test_messages_in_an_odd_order_do_no_harm(client: Client, model: str) -> None:
    unknown = model.replace("model.py", "unknown.py")
    place = {"line": 3, "character": 3}
    assert client.at("hover", unknown, 1, 1) is None
    client.change(unknown, 4, {"range": {"start": place, "end": place}, "text": "x"})
    client.notify("textDocument/didClose", textDocument={"uri": unknown})
    client.notify("textDocument/didSave", textDocument={"uri": unknown})
    client.notify("$/unheardOf", anything=1)
    assert "error" in client.answer(client.ask("textDocument/unheardOf", anything=1))
    client.open(unknown, "x = 1\n")
    numbers = [
        client.ask("textDocument/hover", textDocument={"uri": unknown}, position={"line": 0, "character": 0})
        for _ in range(5)
    ]
    for number in numbers:
        client.notify("$/cancelRequest", id=number)
    client.notify("textDocument/didClose", textDocument={"uri": unknown})
    for number in numbers:
        found = client.answer(number)
        assert found.get("result") is None or "int" in str(found["result"])
    backwards = {"start": {"line": 1, "character": 0}, "end": {"line": 0, "character": 0}}
    client.open(unknown, "x = 1\n", 7)
    client.change(unknown, 8, {"range": backwards, "text": "y"}, {"text": "z = 2\n"})
    assert client.diagnostics(unknown, 8) == []
    assert "Tensor[float32, (3, 5)]" in shown(client, model, "h = rl")


def test_another_open_document_counts_before_it_is_saved(client: Client, model: str, tmp_path: pathlib.Path) -> None:
    layers, train = tmp_path / "layers.py", tmp_path / "train.py"
    layers.write_text("SIZE = 3\n")
    text = (
        "from relay import Float, Tensor, relay\nfrom layers import SIZE\n\n@relay\ndef f(x: Tensor[Float, (SIZE,)]):\n"
    )
    text += "    y = x + 1.0\n    return y\n"
    client.open(train.as_uri(), text)
    assert client.diagnostics(train.as_uri(), 1) == []
    assert "y: Tensor[float32, (3,)]" in shown(client, train.as_uri(), "y = x", text)
    client.open(layers.as_uri(), "SIZE = 5\n")
    client.notify("textDocument/didSave", textDocument={"uri": layers.as_uri()})
    assert "y: Tensor[float32, (5,)]" in shown(client, train.as_uri(), "y = x", text)


def test_without_pygls_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.delitem(sys.modules, "relay.cli.lsp.server", raising=False)
    monkeypatch.delitem(sys.modules, "relay.cli.lsp.definitions", raising=False)
    assert main(["lsp"]) == 2
    assert "pip install 'relay-lang[lsp]'" in capsys.readouterr().err


def test_the_server_ends_when_it_is_told_to() -> None:
    with language_server() as client:
        assert client.end() == 0


def test_the_second_check_of_500_lines_checks_the_changed_function_alone() -> None:
    """Its time is a row of `benchmarks/typecheck.py`."""
    layer = """@relay
def layer{0}(x: Tensor[Float64, (n, 8)], w: Tensor[Float64, (8, 8)]):
    h = relay.tanh(x @ w + 1.0)
    total = 0.0
    for row in h:
        if row.sum() > 0.5:
            total = total + relay.sqrt((row * row).sum())
        else:
            total = total - row.max()
    m = h.mean(axis=1)
    return h * total + relay.softmax(h, axis=1), m

"""
    text = "from relay import Float64, Tensor, dims, relay\n(n,) = dims('n')\n\n"
    text += "".join(map(layer.format, range(42)))
    assert len(text.splitlines()) > 500
    analyzer = Analyzer()
    assert analyzer.analyze(Text(text), "/layers.py").diagnostics == ()
    for name in ("a", "b"):
        changed = analyzer.analyze(Text(text.replace("w + 1.0)", f"w + {name})", 1)), "/layers.py")
        assert [d.message for d in changed.diagnostics] == [f"the name '{name}' is not defined"]
        assert changed.checked.renewed == 1
