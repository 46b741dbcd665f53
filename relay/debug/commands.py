"""The debugger's commands, as text: input and output. They are those of `pdb`, and backward."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from relay.debug.session import Session
from relay.errors import RelayError

HELP = """\
step, s               the next line, into calls         back, b         the line before
next, n               the next line of this function    previous, p     the line of this function before
finish, f             until this function has returned  operation, o    one operation, less than a line
continue, c           to the next breakpoint            reverse, r      back to the last breakpoint
to LINE               to a line                         where, w        the calls that are being run
list, l               the lines around                  up, u; down, d  look at the caller, and back
vars, v               the variables                     print, p, = EXPR  the value of an expression
type EXPR             its type                          stats EXPR      statistics of its numbers
set NAME = EXPR       another value for a variable      breakpoints     what `break` has set
break LINE            stop at a line                    break FUNCTION  at the beginning of a function
break op OPERATOR     at calls of an operator           break if EXPR   where a condition becomes true
break .. if EXPR      at one of these, if it holds      delete NUMBER   remove a breakpoint
help, h               these lines                       quit, q         leave
Without an expression, `p` is `previous`. An empty line repeats the last command that moves."""


class Commands:
    """A session that is driven by commands."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.left = False
        """True if the user wants to leave."""
        self._last = ""
        self._moves: dict[str, Callable[[], object]] = {
            "step": session.step,
            "next": session.over,
            "finish": session.out,
            "continue": session.resume,
            "operation": session.operation,
            "back": session.back,
            "previous": session.back_over,
            "reverse": session.resume_back,
        }
        self._others: dict[str, Callable[[str], str]] = {
            "to": self._to,
            "list": lambda _: session.source(),
            "where": lambda _: session.where(),
            "up": self._up,
            "down": self._down,
            "vars": lambda name: session.show(name or None),
            "print": lambda text: str(session.evaluate(text)),
            "type": session.type,
            "stats": lambda text: str(session.statistics(text)),
            "set": self._set,
            "break": self._break,
            "breakpoints": lambda _: "\n".join(map(str, session.breakpoints)) or "there are none",
            "delete": self._delete,
            "help": lambda _: HELP,
            "quit": self._quit,
        }
        self._short = {"c": "continue", "b": "back", "p": "previous", "=": "print", "d": "down", "bt": "where"}

    @property
    def names(self) -> list[str]:
        """The commands."""
        return [*self._moves, *self._others]

    def greeting(self) -> str:
        """The greeting of a session."""
        name = self.session.program.function.__name__
        return f"{name}, before its first line; `help` lists the commands\n{self.state()}"

    def state(self) -> str:
        """The place where the session is stopped."""
        session = self.session
        if session.finished:
            return f"{session.stop}: {session.result!r}"
        return f"{session.stop}\n{session.source(2)}"

    def run(self, line: str) -> str:
        """Run a command; its output. The user's mistakes are reported in it."""
        text = line.strip() or self._last
        if not text:
            return ""
        if text.startswith("="):
            text = f"= {text[1:]}"
        word, _, rest = text.partition(" ")
        name = self._name(word)
        try:
            if name == "previous" and rest.strip() and word == "p":  # as in `pdb`
                name = "print"
            if name in self._moves:
                if rest.strip():
                    return f"{name} takes nothing after it"
                self._last = text
                self._moves[name]()
                return self.state()
            if name in self._others:
                return self._others[name](rest.strip())
        except RelayError as error:
            return str(error)
        close = difflib.get_close_matches(word, self.names, n=1)
        hint = f", did you mean {close[0]!r}?" if close else "; `help` lists them"
        return f"there is no command {word!r}{hint}"

    def _name(self, word: str) -> str:
        if word in self._short:
            return self._short[word]
        found = [name for name in self.names if name == word or (len(word) == 1 and name.startswith(word))]
        return found[0] if found else word

    def _to(self, rest: str) -> str:
        if not rest.isdigit():
            return "to LINE: the number of a line"
        self.session.run_to(int(rest))
        return self.state()

    def _up(self, _: str) -> str:
        self.session.up()
        return self.session.source(2)

    def _down(self, _: str) -> str:
        self.session.down()
        return self.session.source(2)

    def _set(self, rest: str) -> str:
        name, equals, text = rest.partition("=")
        if not equals or not name.strip() or not text.strip():
            return "set NAME = EXPR"
        self.session.set(name.strip(), self.session.new_value(text))
        return self.session.show(name.strip())

    def _break(self, rest: str) -> str:
        place, found, condition = f" {rest}".partition(" if ")
        words = place.split()
        when = condition.strip() if found else None
        if len(words) == 2 and words[0] == "op":
            return str(self.session.breakpoint(operator=words[1], when=when))
        if len(words) > 1 or (not words and when is None):
            return "break LINE, FUNCTION or `op` OPERATOR, and `if` EXPR; or `if` alone"
        if not words:
            return str(self.session.breakpoint(when=when))
        if words[0].isdigit():
            return str(self.session.breakpoint(int(words[0]), when=when))
        return str(self.session.breakpoint(function=words[0], when=when))

    def _delete(self, rest: str) -> str:
        if not rest.isdigit():
            return "delete NUMBER: that of a breakpoint"
        self.session.remove(int(rest))
        return ""

    def _quit(self, _: str) -> str:
        self.left = True
        return ""
