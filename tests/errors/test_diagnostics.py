"""How messages are laid out: carets on a terminal, colors, several errors in one."""

from __future__ import annotations

import io

import pytest

from relay.errors import FrontendError, RelayError, ShapeError, combine_errors
from relay.errors.diagnostic import Diagnostic, Label, Source, Span, cells, wants_color


def span(text: str, line: int, column: int, end_line: int, end_column: int, first_line: int = 1) -> Span:
    return Span(Source("m.py", text, first_line), line, column, end_line, end_column)


def of(text: str, part: str) -> Span:
    """The span of a part of a text of one line."""
    start = text.index(part)
    return span(text, 1, start + 1, 1, start + len(part) + 1)


def underlined(rendered: str) -> str:
    """What stands above the first carets, cell by cell."""
    lines = rendered.split("\n")
    at = next(i for i, line in enumerate(lines) if "^" in line)
    row = ""
    for character in lines[at - 1]:
        row += "" if cells(character) == 0 else character + "\0" * (cells(character) - 1)
    marks = lines[at]
    return "".join(c for c, mark in zip(row.ljust(len(marks)), marks, strict=False) if mark == "^").replace("\0", "")


def test_layout() -> None:
    text = "x = 1\n    return x + y\n"
    shown = Diagnostic(
        "error",
        "they clash",
        span(text, 2, 12, 2, 17),
        (Label(span(text, 1, 1, 1, 2), "bound here"),),
        ("a fact\nof two lines",),
        "do this",
    )
    assert str(shown) == (
        "m.py:2:12: error: they clash\n"
        "  |\n"
        "2 |     return x + y\n"
        "  |            ^^^^^\n"
        "  |\n"
        "1 | x = 1\n"
        "  | - bound here\n"
        "  = note: a fact\n"
        "          of two lines\n"
        "  = help: do this"
    )


def test_labels_on_the_same_line_share_its_excerpt() -> None:
    text = "return x + y"
    shown = Diagnostic("error", "no", of(text, "x + y"), (Label(of(text, "x"), "a"), Label(of(text, "y"), "b")))
    assert str(shown).split("\n")[1:] == [
        "  |",
        "1 | return x + y",
        "  |        ^^^^^",
        "  |        - a",
        "  |            - b",
    ]


def test_labels_in_other_files_say_where() -> None:
    other = Span(Source("other.py", "def f(): pass"), 1, 1, 1, 6)
    shown = str(Diagnostic("error", "no", of("f(1)", "f(1)"), (Label(other, "defined here"),)))
    assert " --> other.py:1:1\n1 | def f(): pass\n  | ----- defined here" in shown


def test_without_a_place() -> None:
    assert str(Diagnostic("error", "no target", None, (), ("fact",), "fix")) == (
        "error: no target\n  = note: fact\n  = help: fix"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("\treturn x + y", "x + y"),
        ("    \t return a\t+ b", "a\t+ b"),
        ("größe * 2 + ä", "2 + ä"),
        ("名前 = 値 + 行列", "値 + 行列"),
        ("e\u0301tat = cafe\u0301 + x", "x"),
        ("cafe\u0301 + x", "cafe\u0301"),
        ("s = '👩\u200d🔬' + x", "x"),
        ("\x0cx = bad", "bad"),
        ("x = '\x1b[2J' + bad", "bad"),
        ("a" * 500 + " + bad + " + "b" * 500, "bad"),
        ("値" * 500 + " + bad", "bad"),
        ("bad + " + "b" * 500, "bad"),
    ],
)
def test_carets_stand_under_the_expression(text: str, part: str) -> None:
    shown = Diagnostic("error", "no", of(text, part)).render()
    expected = "".join(c for c in part if cells(c) and c not in "\t ")
    assert underlined(shown).replace(" ", "") == expected
    assert max(map(cells, shown.split("\n"))) < 140
    assert "\x1b" not in shown and "\t" not in shown


def test_a_long_expression_is_cut() -> None:
    text = "x = " + "+".join(["value"] * 200)
    shown = Diagnostic("error", "no", of(text, text[4:])).render(width=60)
    source, marks = shown.split("\n")[2:]
    assert source.endswith("…") and cells(source) < 70 and marks.count("^") == 58


def test_a_place_behind_the_end_of_the_line() -> None:
    shown = str(Diagnostic("error", "no", span("x = (", 1, 6, 1, 7)))
    assert shown.split("\n")[-1] == "  |      ^"


def test_expressions_over_several_lines() -> None:
    text = "y = f(\n    a,\n\n    b,\n)\n"
    assert str(Diagnostic("error", "no", span(text, 1, 5, 5, 2))).split("\n")[2:] == [
        "1 | y = f(",
        "  |     ^^",
        "2 |     a,",
        "  |     ^^",
        "4 |     b,",
        "  |     ^^",
        "5 | )",
        "  | ^",
    ]


def test_long_expressions_show_their_ends() -> None:
    text = "f(\n" + "    a,\n" * 20 + ")\n"
    lines = str(Diagnostic("error", "no", span(text, 1, 1, 22, 2))).split("\n")
    assert lines[2:] == [" 1 | f(", "   | ^^", " 2 |     a,", "   |     ^^", "...", "22 | )", "   | ^"]


def test_colors() -> None:
    diagnostic = Diagnostic("warning", "unused", of("x = 1", "x"), (), (), "remove it")
    colored = diagnostic.render(color=True)
    assert "\x1b[1;33m^\x1b[0m" in colored and "\x1b[1;33mwarning:\x1b[0m" in colored
    plain = colored
    for code in ("1;31", "1;33", "1;36", "1;32", "1;34", "34", "1", "0"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == str(diagnostic)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (object(), {}, False),
    ],
)
def test_when_colors_are_shown(stream: io.StringIO, environment: dict[str, str], wanted: bool) -> None:
    assert wants_color(stream, environment) is wanted


def test_errors_together() -> None:
    text = "f(a, b)"
    first, second = ShapeError("one", of(text, "a")), FrontendError("two", of(text, "b"))
    again = ShapeError("one, of another instance", of(text, "a"))
    error = combine_errors([first, again, second])
    assert error is first
    assert [(d.message, d.code) for d in error.diagnostics] == [("one", "ShapeError"), ("two", "FrontendError")]
    assert str(error).count("error: ") == 2
    assert combine_errors([error, RelayError("three")]).diagnostics[2].message == "three"
