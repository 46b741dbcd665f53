"""The debugger's terminal: commands with completion and history."""

from __future__ import annotations

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import InMemoryHistory

from relay.debug.commands import Commands

PROMPT = "(relay) "


def run(commands: Commands) -> None:
    """Read commands until the user leaves, by `quit` or Ctrl-D. Ctrl-C drops the line, or stops the program."""
    prompt: PromptSession[str] = PromptSession(history=InMemoryHistory())
    while not commands.left:
        try:
            line = prompt.prompt(PROMPT, completer=WordCompleter(_words(commands)), complete_while_typing=False)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            said = commands.run(line)
        except KeyboardInterrupt:
            said = "interrupted"
        if said:
            print(said, flush=True)


def _words(commands: Commands) -> list[str]:
    """The words for completion: the commands, and the variables in scope."""
    session = commands.session
    return [*commands.names, *([] if session.finished else session.variables)]
