"""The prompt at a terminal: inputs of several lines, colors, completion, and the inputs of earlier times."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

from relay.cli.repl.commands import DEBUGGER_PROMPT, Commands
from relay.cli.repl.completion import completions
from relay.cli.repl.inputs import INDENT, Inputs, indentation, is_complete

PROMPT = ">>> "


def run(inputs: Inputs) -> None:
    """Read and run inputs until Ctrl-D. Ctrl-C drops the input, or stops what runs."""
    session: PromptSession[str] = PromptSession(
        history=_history(),
        multiline=True,
        key_bindings=_keys(),
        completer=_Names(inputs),
        complete_while_typing=False,
        lexer=PygmentsLexer(PythonLexer),
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        prompt_continuation=lambda width, number, wrapped: "... ",
    )
    debugger: PromptSession[str] = PromptSession(history=InMemoryHistory())
    commands = Commands(inputs, lambda prompt: _line(debugger, prompt))
    while True:
        try:
            text = session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            commands.run(text)
        except KeyboardInterrupt:
            print("interrupted")


def _line(session: PromptSession[str], prompt: str = DEBUGGER_PROMPT) -> str | None:
    try:
        return session.prompt(prompt)
    except EOFError:
        return None


def _history() -> History:
    """The inputs of earlier times, on disk; those of this time where nothing can be written."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "relay" / "history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            pass
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


class _Names(Completer):
    """Completion by what is known at the prompt."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The completions of the text before the cursor."""
        for word, said, length in completions(document.current_line_before_cursor, self._inputs.locals):
            yield Completion(word, start_position=-length, display_meta=said)


def _keys() -> KeyBindings:
    """Enter runs an input that is complete, and else begins a line; at the beginning of a line tab indents, and
    backspace goes back to the indentation before."""
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        document = buffer.document
        if document.is_cursor_at_the_end and is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + indentation(document.text_before_cursor))

    @keys.add("tab")
    def tab(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not buffer.document.current_line_before_cursor.strip():
            buffer.insert_text(INDENT)
        elif buffer.complete_state:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    @keys.add("backspace")
    def backspace(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.current_line_before_cursor
        is_indentation = bool(before) and not before.strip(" ")
        buffer.delete_before_cursor((len(before) - 1) % len(INDENT) + 1 if is_indentation else 1)

    return keys
