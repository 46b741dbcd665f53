"""The mistakes of a program: each of its functions is walked through, with what its variables mean."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from relay.errors import Label, Span, TypeCheckError
from relay.errors.place_warnings import is_collecting, warn_at
from relay.ir.definition import Definition
from relay.ir.expr import Function, Lambda
from relay.ir.traverse import walk
from relay.typecheck.elaboration.abstract_values import Context, GlobalFunction, LocalFunction, is_of_template
from relay.typecheck.elaboration.aliasing.effects import effect
from relay.typecheck.elaboration.aliasing.kinds import Kind, Meanings
from relay.typecheck.elaboration.aliasing.objects import Change, Object
from relay.typecheck.elaboration.aliasing.places import Mistake
from relay.typecheck.elaboration.aliasing.summaries import Reference, Summary, summary_of
from relay.typecheck.elaboration.aliasing.walk import TooLong, Walker

_OWN = str(Path(__file__).parents[3]) + os.sep

MOST_WALKS = 4
"""The largest number of walks through a function that calls itself."""

Body = tuple[GlobalFunction | LocalFunction, Context]
"""An instance of a function: what was called, and what its variables mean."""


class Aliases:
    """The walks through the functions of one program."""

    def __init__(self, bodies: list[Body]) -> None:
        self._contexts: dict[Definition, list[Context]] = {}
        self._local: dict[Function, list[Context]] = {}
        for callee, context in bodies:
            if isinstance(callee, GlobalFunction):
                self._contexts.setdefault(callee.definition, []).append(context)
            else:
                self._local.setdefault(callee.function, []).append(context)
        self._summaries: dict[Definition, Summary] = {}
        self._mistakes: dict[Definition, list[Mistake]] = {}
        self._lost: dict[Definition, list[Mistake]] = {}
        self._open: dict[Definition, bool] = {}  # those that are being walked through, and whether they call themselves
        self._unsure: set[Definition] = set()  # those that call one which is open

    def mistakes(self) -> list[Mistake]:
        """The mistakes in all functions."""
        for definition in self._contexts:
            self.summarize(definition)
        return [mistake for found in self._mistakes.values() for mistake in found]

    def lost(self, definition: Definition) -> list[Mistake]:
        """The changes of objects that a function is given and does not return, which Python, as its caller, would not
        see."""
        self.summarize(definition)
        return self._lost.get(definition, [])

    def summarize(self, definition: Definition) -> Summary:
        """The effect of a function on its arguments. Its calls of itself are taken to do nothing at first, then what
        was found."""
        if definition in self._open:
            self._open[definition] = True
            inner = list(self._open)
            self._unsure.update(inner[inner.index(definition) + 1 :])
        if definition in self._summaries:
            return self._summaries[definition]
        self._summaries[definition] = Summary()
        for _ in range(0 if is_own(definition) else MOST_WALKS):
            before = self._summaries[definition].content
            self._open[definition] = False
            found = self._summaries[definition] = self._walk(definition)
            if not self._open[definition] or found.content == before:
                break
            self._forget_unsure()
        self._open.pop(definition, None)
        if not self._open:
            self._forget_unsure()
        return self._summaries[definition]

    def _forget_unsure(self) -> None:
        """Forget what was found with another summary of a function that calls itself. Functions that are being walked
        through stay unsure: they may call another one that is, too."""
        for definition in self._unsure - self._open.keys():
            self._summaries.pop(definition, None)
        self._unsure &= self._open.keys()

    def _walk(self, definition: Definition) -> Summary:
        function = definition.function
        contexts = list(self._contexts.get(definition, ()))
        for binding in walk(function.body):
            if isinstance(binding.value, Lambda):
                contexts += self._local.get(binding.value.function, ())
        walker = Walker(definition, Meanings(contexts), effect, self.summarize, is_own)
        roots: dict[Object, int] = {}
        for position, parameter in enumerate(function.parameters):
            walker.bind_new(parameter)
            roots |= dict.fromkeys(walker.objects(parameter), position)
        try:
            result = walker.run(function)
        except TooLong:
            _warn_once(function.span, f"{function.name} is too long to look for changes under other names in it")
            result = None
        self._mistakes[definition] = list(walker.mistakes.values())
        summary = summary_of(walker, roots, result)
        self._lost[definition] = [] if result is None else list(_lost_changes(walker, function, summary))
        return summary


def _lost_changes(walker: Walker, function: Function, summary: Summary) -> Iterator[Mistake]:
    """The first changes of the objects with fields that a function is given, unless its result holds these."""
    returned = {r.parameter for r in (*summary.result, *summary.inside) if not r.path}
    for position, parameter in enumerate(function.parameters):
        changes = [c for found, c in summary.changes if found.parameter == position and not _is_of_item(found, c)]
        if changes and position not in returned and walker.kind(parameter) is Kind.RECORD:
            first = min(changes, key=lambda change: change.time)
            yield Mistake(parameter.name, first.span, first, "lost")


def _is_of_item(changed: Reference, change: Change) -> bool:
    """True for `p[i] = v` of an object that is given, which may have a result of its own, as for arrays."""
    steps = change.first.steps
    return not changed.path and not (steps and isinstance(steps[0].key, str))


def is_own(definition: Definition) -> bool:
    """True if a function is Relay's own: its library is written for values."""
    span = definition.function.span
    return span is None or is_of_template(span) or span.source.filename.startswith(_OWN)


def errors(bodies: list[Body], entry: Definition | None) -> list[TypeCheckError]:
    """The errors for the mistakes of a program, which Python calls at `entry`. Where only `x += v` of an array differs
    there is a warning."""
    found = []
    aliases = Aliases(bodies)
    for mistake in [*aliases.mistakes(), *(() if entry is None else aliases.lost(entry))]:
        if mistake.change.is_sum:
            _warn(mistake)
        else:
            found.append(_error(mistake))
    return found


_SUM = re.compile(r"(\w+) *([^\w=]+)=")
_warned: set[tuple[str, int]] = set()


def _warn(mistake: Mistake) -> None:
    """Warn of a sum in place."""
    span = mistake.change.first.span
    if span is None:
        return
    text = span.source.line(span.line).strip()
    written = _SUM.match(text)
    advice = f": write `{written[1]} = {written[1]} {written[2]} ..`" if written is not None else ""
    _warn_once(
        span,
        f"`{text}` makes a new array, as with JAX; NumPy and PyTorch change the old one, which has another name, too"
        f"{advice}",
    )


def _warn_once(span: Span | None, message: str) -> None:
    """Warn of a line, once in a process."""
    if span is None or ((span.source.filename, span.line) in _warned and not is_collecting()):
        return
    _warned.add((span.source.filename, span.line))
    warn_at(span, message)


_WRITTEN = {
    "left": (
        "the generator `{}` may be left early, and here it runs to its end at once: {}",
        "take all elements, `list({}(..))`, or write its loop here",
    ),
    "prints": (
        "the generator `{}` prints as its elements are asked for, and here it runs to its end at once",
        "print where its elements are used",
    ),
    "hidden": ("the result of `{}` holds an iterator", "let it hold a list, by `list(..)`"),
    "list": ("`next` needs an iterator, and `{}` is a list", "write `{0} = iter({0})` before"),
    "items": ("`{}` is an iterator, which has no items", "make it a list before: `{} = list(..)`"),
}
"""The messages of mistakes with generators and iterators, and their remedies."""


def _error(mistake: Mistake) -> TypeCheckError:
    name, change = mistake.name, mistake.change
    spans = dict.fromkeys((change.span, change.first.span))
    labels = tuple(Label(s, "the change") for s in spans if s is not None and s != mistake.span)
    if mistake.what == "global":
        return TypeCheckError(
            f"this changes the global `{name}`, in Python for all later calls",
            mistake.span,
            labels=labels,
            help=f"copy it before: `{name}.copy()`",
        )
    if mistake.what == "default":
        return TypeCheckError(
            f"this changes the default of `{name}`, in Python for all later calls",
            mistake.span,
            labels=labels,
            help=f"pass a new one, or write `{name}=None` and make it in the function",
        )
    if change.is_lost:
        return TypeCheckError(
            f"an error in `{change.name}` loses its changes of `{name}`, which Python's handlers see",
            mistake.span,
            labels=labels,
            help="make the change in the `try` itself, or raise the error before the first change",
        )
    if mistake.what in _WRITTEN:
        message, help = _WRITTEN[mistake.what]
        return TypeCheckError(message.format(name, change.name), mistake.span, help=help.format(name))
    if change.first.is_use or change.is_use:
        return TypeCheckError(
            f"in Python, `{name}` is an iterator, of which nothing is left after its first use",
            mistake.span,
            labels=tuple(Label(label.span, "the first use") for label in labels),
            help=f"make it a list before: `{name} = list(..)`",
        )
    if change.is_late:
        return TypeCheckError(
            f"a generator changes `{change.name}` as its elements are asked for, and here it runs to its end at once",
            mistake.span,
            labels=labels,
            help="take all elements before this, `xs = list(..)`, if that is meant; else write its loop here",
        )
    if mistake.what == "lost":
        message = f"`{name}` is a value of the caller's, which does not see this change, and it is not returned"
        help = f"return {name}, and assign the result of the call"
        return TypeCheckError(message, mistake.span, labels=labels, help=help)
    if mistake.what == "iterated":
        message = f"`{change.name}` changes in a loop that goes through it: in Python, later rounds see that"
        return TypeCheckError(message, mistake.span, labels=labels, help="go through a copy: `for .. in list(..)`")
    if name == "yielded__":  # the elements of a generator so far
        message = f"in Python, what has been yielded before sees this change of `{change.name}`: they are one object"
        help = "yield a copy, by `.copy()`"
    elif name == change.name:
        message = f"in Python, the change of `{name}` is seen under another name, or in two places"
        help = "make one of them a copy, by `.copy()`, before the change"
    else:
        message = f"in Python, `{name}` sees the change of `{change.name}`: they are one object, or one is in the other"
        copied = f"dataclasses.replace({change.name})" if change.is_of_record else f"{change.name}.copy()"
        help = f"make one of them a copy before the change, as by `{change.name} = {copied}`"
    return TypeCheckError(message, mistake.span, labels=labels, help=help)
