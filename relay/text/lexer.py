"""The tokens of Relay's notation, and a cursor over them that reports what it found where it expected something else.

%x  @f  @"a b"  'l  constant#0  $list  name  "text"  2.5e-3  -inf
->  ( ) [ ] { } , ; : = . < | * + - // % == != >= !  # comment
"""

from __future__ import annotations

import bisect
import contextlib
import difflib
import enum
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from relay.errors import FrontendError, Label, Source, Span


class Kind(enum.Enum):
    """The kind of a token."""

    VARIABLE = "a variable"
    GLOBAL = "a function of the module"
    LABEL = "a label"
    CONSTANT = "a constant"
    INTRINSIC = "a function of Python's syntax"
    NUMBER = "a number"
    NAME = "a name"
    STRING = "a text"
    SYMBOL = "a symbol"
    END = "the end of the text"


class Token(NamedTuple):
    """A stretch of the text, from `start` to before `end`."""

    kind: Kind
    text: str
    start: int
    end: int


_STRING = r'"(?:[^"\\\n]|\\[^\n])*"'
_TOKEN = re.compile(
    rf"""(?P<skip>(?:[ \t\r\n]+|\#[^\n]*)+)
    |(?P<VARIABLE>%\w+)|(?P<GLOBAL>@(?:\w+|{_STRING}))|(?P<LABEL>'\w+)|(?P<CONSTANT>constant\#\d+)|(?P<INTRINSIC>\$\w+)
    |(?P<NUMBER>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-(?:inf|nan)\b)|(?P<NAME>[^\W\d]\w*)|(?P<STRING>{_STRING})
    |(?P<SYMBOL>->|//|==|!=|>=|!|[()\[\]{{}},;:=.<|*+%-])""",
    re.VERBOSE | re.ASCII,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LONGEST_NUMBER = 1000
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DECLARATIONS = ("data", "type", "entry", "fn", "derivative", "constants", "sources")
"""The words that the declarations of a module begin with."""


def name_text(name: str) -> str:
    """A name as it is written: in quotes where it is not a plain one."""
    return name if _PLAIN_NAME.fullmatch(name) else quote_text(name)


def quote_text(text: str) -> str:
    """A text in quotes, on one line."""
    return json.dumps(text, ensure_ascii=False)


def unquote_text(text: str) -> str:
    """The name or text that is written like this. Raises ValueError for an unknown escape."""
    if not text.startswith('"'):
        return text
    value: str = json.loads(text, strict=False)
    return value


def stretches(text: str) -> Iterator[tuple[Kind | None, str]]:
    """All of a text in order: tokens with their kinds; None for space, comments, and what begins no token."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        end = position + 1 if found is None else found.end()
        group = "skip" if found is None else found.lastgroup or "skip"
        yield (None if group == "skip" else Kind[group]), text[position:end]
        position = end


class _Unmatched(NamedTuple):
    """The error that a bracket has no other one, and where in the text that shows."""

    error: FrontendError
    place: int


class Cursor:
    """The tokens of a text and a position among them. Raises FrontendError for what is not a token."""

    def __init__(self, text: str, filename: str) -> None:
        self.source = Source(filename, text)
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.tokens = self._tokens(text)
        self.position = 0
        self.closing, self.unmatched = self._matching()
        if self.unmatched is not None:
            self.closing, self.unmatched = self._matching(apart=True)

    def _tokens(self, text: str) -> list[Token]:
        tokens: list[Token] = []
        kinds = {kind.name: kind for kind in Kind}
        match, position, size = _TOKEN.match, 0, len(text)
        while position < size:
            found = match(text, position)
            if found is None:
                token = Token(Kind.SYMBOL, text[position], position, position + 1)
                if token.text == '"':
                    raise FrontendError("this text has no closing quote on its line", self.span(token))
                raise FrontendError(f"the character {token.text!r} begins nothing", self.span(token))
            start, position = position, found.end()
            group = found.lastgroup or ""
            if group == "NUMBER" and position - start > _LONGEST_NUMBER:
                raise FrontendError(
                    f"a number has at most {_LONGEST_NUMBER} characters",
                    self.span(Token(Kind.NUMBER, "", start, position)),
                )
            if group != "skip":
                tokens.append(Token(kinds[group], found.group(), start, position))
        tokens.append(Token(Kind.END, "", size, size))
        return tokens

    def _matching(self, *, apart: bool = False) -> tuple[dict[int, int], _Unmatched | None]:
        """For each opening bracket the position of its closing one, and the first mistake.

        What is never closed ends before the closing bracket of what is around it; what closes nothing is passed over.
        So a text with a mistake can be read up to it. `apart`: what begins a line like a declaration is one.
        """
        matching: dict[int, int] = {}
        opened: list[int] = []
        first: _Unmatched | None = None
        for position, token in enumerate(self.tokens):
            if token.kind is Kind.END or (apart and self._begins_declaration(token)):
                if opened:
                    opening = self.tokens[opened[-1]]
                    error = FrontendError(f"this `{opening.text}` is never closed", self.span(opening))
                    first = first or _Unmatched(error, token.start)
                matching.update((open_, position - 1) for open_ in opened)
                opened = []
            elif token.kind is not Kind.SYMBOL:
                continue
            elif token.text in _CLOSING:
                opened.append(position)
            elif token.text in _CLOSING.values():
                if not opened or _CLOSING[self.tokens[opened[-1]].text] != token.text:
                    first = first or _Unmatched(self._bracket_error(token, opened), token.start)
                if any(_CLOSING[self.tokens[open_].text] == token.text for open_ in opened):
                    while _CLOSING[self.tokens[opened[-1]].text] != token.text:
                        matching[opened.pop()] = position - 1
                    matching[opened.pop()] = position
        return matching, first

    def _begins_declaration(self, token: Token) -> bool:
        """True if a token begins a line, and is a word that declarations begin with."""
        _, column = self._place(token.start)
        return token.text in DECLARATIONS and token.kind is Kind.NAME and column == 1

    def _bracket_error(self, token: Token, opened: Sequence[int]) -> FrontendError:
        """The error that a bracket closes none, or another one than it should."""
        if not opened:
            return FrontendError(f"there is nothing that this `{token.text}` closes", self.span(token))
        opening = self.tokens[opened[-1]]
        return FrontendError(
            f"expected `{_CLOSING[opening.text]}`, found `{token.text}`",
            self.span(token),
            labels=(Label(self.span(opening), "opened here"),),
        )

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """A context in which the text is read: an error is reported, or that of a bracket if it comes before."""
        try:
            yield
        except FrontendError as error:
            if self.unmatched is None or (error.span is not None and self._offset(error.span) < self.unmatched.place):
                raise
        if self.unmatched is not None:
            raise self.unmatched.error

    # ---- moving

    def skip_to_declaration(self) -> None:
        """Go on to where a declaration begins a line, or to the end."""
        self.take()
        while self.next.kind is not Kind.END and not self._begins_declaration(self.next):
            self.take()

    @property
    def next(self) -> Token:
        """The token at the position."""
        return self.tokens[self.position]

    def peek(self, count: int = 1) -> Token:
        """The token this many places after the position."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The token at the position, and go on."""
        token = self.tokens[self.position]
        if token.kind is not Kind.END:
            self.position += 1
        return token

    def is_at(self, *texts: str) -> bool:
        """True if these symbols or words are at the position."""
        for offset, text in enumerate(texts):
            token = self.peek(offset)
            if token.text != text or token.kind is Kind.STRING:
                return False
        return True

    def accept(self, text: str) -> Token | None:
        """The symbol or word, if it is the next token."""
        return self.take() if self.is_at(text) else None

    def expect(self, text: str, where: str = "") -> Token:
        """The symbol or word. Raises FrontendError for anything else."""
        if not self.is_at(text):
            raise self.expected_error(f"`{text}`{where}")
        return self.take()

    def expect_kind(self, kind: Kind, what: str = "") -> Token:
        """A token of a kind. Raises FrontendError for any other."""
        if self.next.kind is not kind:
            raise self.expected_error(what or kind.value)
        return self.take()

    def name(self, what: str) -> str:
        """A name, plain or in quotes. Raises FrontendError for anything else."""
        if self.next.kind not in (Kind.NAME, Kind.STRING):
            raise self.expected_error(what)
        return self.unquote(self.take())

    def string(self, what: str) -> str:
        """The content of a text in quotes. Raises FrontendError for anything else."""
        return self.unquote(self.expect_kind(Kind.STRING, what))

    def unquote(self, token: Token) -> str:
        """The value of a name or text in quotes. Raises FrontendError for an unknown escape."""
        try:
            return unquote_text(token.text[1:] if token.kind is Kind.GLOBAL else token.text)
        except ValueError:
            raise FrontendError("this text has an escape that does not exist", self.span(token)) from None

    # ---- places and errors

    def span(self, first: Token, last: Token | None = None) -> Span:
        """The place of a token, or of those from one to another."""
        line, column = self._place(first.start)
        end_line, end_column = self._place((last or first).end)
        return Span(self.source, line, column, end_line, end_column)

    def span_from(self, first: Token) -> Span:
        """The place of the tokens from this one to the one before the position."""
        return self.span(first, self.tokens[max(self.position - 1, 0)])

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def _offset(self, span: Span) -> int:
        return self._line_starts[span.line - 1] + span.column - 1

    def expected_error(self, what: str, help: str | None = None) -> FrontendError:
        """The error that something else is at the position."""
        token = self.next
        found = token.kind.value if token.kind is Kind.END else f"`{shorten(token.text)}`"
        return FrontendError(f"expected {what}, found {found}", self.span(token), help=help)

    def unknown_name_error(
        self, what: str, token: Token, name: str, known: Iterable[str], mark: str = ""
    ) -> FrontendError:
        """The error that a name means nothing, with the nearest that does."""
        near = difflib.get_close_matches(name, list(known), 5)
        best = max(near, key=lambda k: (difflib.SequenceMatcher(None, name, k).ratio(), k[:1] == name[:1]), default="")
        help = f"did you mean `{mark}{best}`?" if best else None
        return FrontendError(f"there is no {what} `{mark}{name}`", self.span(token), help=help)


def shorten(text: str) -> str:
    """A text of at most 40 characters."""
    return text if len(text) <= 40 else f"{text[:37]}..."
