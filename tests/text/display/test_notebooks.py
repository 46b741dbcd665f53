"""What notebooks show: functions, arrays and errors as HTML, in an IPython shell, escaped, in light and dark themes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import relay
from relay import Float, Tensor
from relay.support.html import STYLE, from_terminal
from relay.text.display.programs import MOST_LINES, highlighted_lines

VOID = {"br", "meta", "link", "hr"}


class Reader(HTMLParser):
    """Reads HTML strictly: every element is closed in order. `text` is what is shown, `titles` by what they are on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.titles: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "style":
            return
        self.text += data
        title = self.open[-1][1].get("title") if self.open else None
        if title:
            self.titles.append((data, title))


@relay
def scaled(x: Tensor[Float, (3,)], k: Tensor[Float, ()]):
    y = relay.softmax(x)
    for _ in range(2):
        y = y * k
    return y


def test_a_function_is_its_program_with_types() -> None:
    found = Reader(scaled._repr_html_())
    assert scaled.text() in found.text and "scaled : fn(Tensor[float32, (3,)]" in found.text
    titles = dict(found.titles)
    assert titles["%k"] == "%k: Tensor[float32, ()]" and titles["%y"] == "%y: Tensor[float32, (3,)]"
    assert titles["softmax"].startswith("softmax(x, axis=-1)\nT:float -> T\n")
    words = re.findall(r'<span class="(\w)"[^>]*>([^<]*)</span>', scaled._repr_html_())
    assert ("k", "loop") in words and ("t", "Tensor") in words and ("n", "3") in words


def test_types_of_each_function() -> None:
    text = """fn f(%x: fn(Tensor[float32, ()], Ref[T]) -> T) -> T { %x }

fn g(%x: (Tensor[float32, (n, 2)], List)) -> List {
  match %x { Cons(%head: Tensor[int32, ()], %x2: List) -> {
    loop 'a for %i: Tensor[int32, ()] < %n (%s: T = %i) { dead } } }
}"""
    html = "\n".join(highlighted_lines(text))
    found = Reader(html)
    assert found.text == text
    assert found.titles[0] == ("%x", "%x: fn(Tensor[float32, ()], Ref[T]) -> T")
    titles = dict(found.titles)
    assert titles["%x"] == "%x: (Tensor[float32, (n, 2)], List)" and titles["%i"] == "%i: Tensor[int32, ()]"
    assert titles["%head"] == "%head: Tensor[int32, ()]" and titles["%s"] == "%s: T" and "%n" not in titles
    assert len(highlighted_lines(text)) == text.count("\n") + 1


def test_functions_without_a_type() -> None:
    f = relay.from_source("def f(x):\n    return x + nothing\n")
    found = Reader(f._repr_html_())
    assert "the name 'nothing' is not defined" in found.text and "^^^^^^^" in found.text
    g = relay.grad(relay.from_source("def g(x):\n    return x * 2.0\n"))
    assert "g" in Reader(g._repr_html_()).text


def test_long_programs_are_cut() -> None:
    count = MOST_LINES + 50
    lines = [f"    x{i + 1} = relay.sin(x{i})" for i in range(count)]
    f = relay.from_source("def f(x0):\n" + "\n".join(lines) + f"\n    return x{count}\n", {"relay": relay})
    text = Reader(f._repr_html_()).text
    assert re.search(r"# \.\. \d+ more lines$", text) and len(text.split("\n")) == MOST_LINES + 1


def test_arrays() -> None:
    text = Reader(relay.from_source("def f(x):\n    return x + x\n")(np.ones((2, 3), np.float32))._repr_html_()).text
    assert text == "Array float32 2 × 3, 24 bytes[[2., 2., 2.],\n [2., 2., 2.]]"  # noqa: RUF001
    large = relay.Array(np.arange(1e6).reshape(1000, 1000))
    text = Reader(large._repr_html_()).text
    assert "float64 1000 × 1000, 7.6 MiB" in text and "..." in text and len(text) < 1000  # noqa: RUF001
    assert Reader(relay.Array(np.float32(1.5))._repr_html_()).text == "Array float32 scalar, 4 bytes1.5"
    assert large._repr_mimebundle_().keys() == {"text/plain", "text/html"}
    gone = relay.Array(np.ones(3))
    gone.donate("f")
    assert "donated to f" in Reader(gone._repr_html_()).text


EVIL = '<script>alert("1")</script> & <img src=x onerror=alert(1)>'


def test_markup_is_text() -> None:
    f = relay.from_source(f"def f(x):\n    assert x > 0.0, {EVIL!r}\n    print({EVIL!r}, x)\n    return x\n")
    with pytest.raises(relay.ExecutionError) as failed:
        f.interpret(-1.0)
    for shown in (f._repr_html_(), failed.value._repr_html_()):
        found = Reader(shown)
        assert not {"script", "img"} & found.tags and "<script>" in found.text
    assert from_terminal("\x1b[1;31merror:\x1b[0m <b>") == '<span class="error">error:</span> &lt;b&gt;'


def test_errors_are_shown_as_they_are_printed() -> None:
    with pytest.raises(relay.TypeMismatch) as caught:
        scaled(np.ones(4), 1.0)
    found = Reader(caught.value._repr_html_())
    assert found.text == str(caught.value)
    assert '<span class="error">error:</span>' in caught.value._repr_html_()


def test_themes() -> None:
    assert "prefers-color-scheme:dark" in STYLE and STYLE.count("{") == STYLE.count("}")
    for theme in ('[data-jp-theme-light="true"]', '[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-light"):
        assert f"{theme} .relay-display" in STYLE
    used = set(re.findall(r"var\((--\w+)\)", STYLE))
    first, second = (set(re.findall(r"(--\w+):", part)) for part in STYLE.split("@media")[:2])
    assert used <= first and first == second, "both themes have all colors"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config, colors="nocolor")
    made.display_formatter.active_types = ["text/plain", "text/html", "image/svg+xml"]
    for formatter in made.display_formatter.formatters.values():
        formatter.enabled = True
    try:
        yield made
    finally:
        made.restore_sys_module_state()
        InteractiveShell.clear_instance()
        for name in ("ps1", "ps2", "ps3"):
            vars(sys).pop(name, None)


def test_in_a_shell(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.push({"scaled": scaled, "np": np, "relay": relay})
    for expression in ("scaled", "scaled(np.ones(3, np.float32), np.float32(2))"):
        data, _ = shell.display_formatter.format(shell.run_cell(expression).result)
        assert data["text/html"].startswith("<style>") and "text/plain" in data
    data, _ = shell.display_formatter.format(scaled.plot())
    assert data["text/plain"].startswith("<drawing of scaled")
    capsys.readouterr()
    shell.run_cell("scaled(np.ones(4), 1.0)")
    said = capsys.readouterr().out
    assert "error: argument x of scaled must be" in said and "function.py" not in said and "\x1b[1;31merror" not in said
    shell.colors = "linux"
    shell.run_cell("scaled(np.ones(4), 1.0)")
    assert "\x1b[1;31merror:\x1b[0m" in capsys.readouterr().out


@relay
def descends(x, n):
    """Has <b>markup</b>."""
    y = relay.log(x)  # <script>
    return y[n]


def test_a_session() -> None:
    session = relay.debug.step(descends, np.ones(3, np.float32), 7)
    session.step()
    shown = session._repr_html_()
    found = Reader(shown)
    assert "script" not in found.tags and "-> " in found.text and "return y[n]" in found.text
    assert (
        re.search(r'<span class="here"><span class="head">-&gt; \d+ </span>.*return</span>', shown)
        and "# <script>" in found.text
    )
    assert "xTensor[float32, (3,)][1., 1., 1.]" in found.text and "in descends: return y[n]" in found.text
    session.resume()
    found = Reader(session._repr_html_())
    assert "out of range" in found.text or "index" in found.text
    session = relay.debug.step(scaled, np.ones(3, np.float32), np.float32(2))
    session.resume()
    assert "the call has returned" in Reader(session._repr_html_()).text
    assert session._repr_mimebundle_()["text/plain"] == repr(session)
