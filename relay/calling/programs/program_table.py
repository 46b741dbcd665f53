"""The table of a function's programs: which of them serves a call, and why a call needs a new one.

A call is asked for by its signature, which the descriptions of its arguments make (`relay.calling.arguments`):

    exact       programs by signature: dtypes, sizes, structures, and the values that specialize
    symbolic    programs with symbolic sizes, by the kind of a call: its signature with ranks in place of sizes. The
                guards of each, what it assumes of the sizes, decide whether it serves a call
    lists       programs for lists of any length, under the signatures that they have served

Calls that are like an earlier one do not come here (`shortcuts`). `entries` tells of each program when it was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import attrs

from relay.calling.arguments import ArgumentDescription
from relay.calling.data_calls import DataCall
from relay.calling.programs.configuration import Configuration, candidates, search
from relay.calling.programs.shape_policy import SizeHistory, Sizes, SymbolicSignature, axes, kind, of_any_length
from relay.calling.programs.signature_text import differences, static_text
from relay.compilation.stages import CompiledSignature
from relay.errors import TypeCheckError
from relay.ir.sizes.extents import Place
from relay.ir.types import show
from relay.typecheck.elaboration import Argument
from relay.typecheck.elaboration.argument_sources import ArgumentsSpecialize, Places

Signature: TypeAlias = tuple[object, ...]

Elaborate: TypeAlias = "Callable[[Sequence[Argument], Collection[Place], Places], object]"
"""Elaborates a function for arguments, with symbolic axes, and with numbers that may be static."""

MANY_SYMBOLIC = 32
"""The largest number of programs with symbolic sizes for one kind of call. Each call tries them in order."""


@attrs.frozen(eq=False)
class Program:
    """One program of a function, as `f.programs()` shows it."""

    number: int
    signature: str
    """The types of the parameters, and the values that are static."""
    guards: tuple[str, ...]
    """The assumptions of the program about symbolic sizes; with `specialized`, the conditions of a call."""
    specialized: tuple[str, ...]
    """The values that the program is specialized to: static values, and sizes that had to be numbers, with the
    reason."""
    reason: str
    """The reason why it was compiled."""
    uses: int
    """The number of times that its native code has run."""
    seconds: float | None
    """The seconds that compiling took, type inference included; None if it has not been compiled, only interpreted."""

    def __str__(self) -> str:
        where = f"   where {', '.join(self.guards)}" if self.guards else ""
        took = "not compiled yet" if self.seconds is None else f"compiled in {self.seconds:.2f} s"
        lines = [f"{self.number}  {self.signature}{where}", f"   {took}: {self.reason}; {_times(self.uses)}"]
        lines += [f"   specialized to {text}" for text in self.specialized]
        return "\n".join(lines)


class Programs(tuple[Program, ...]):
    """The programs of a function, in the order in which they were made."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no programs yet"

    __str__ = __repr__


@attrs.frozen(eq=False)
class Explanation:
    """The program that serves a call, or the reason why none does."""

    program: Program | None
    """The program that serves it; None if one would be compiled."""
    refusals: tuple[str, ...]
    """For each program that does not serve it, the guard that failed."""
    compiles: str | None
    """The program that would be compiled."""

    def __str__(self) -> str:
        lines = [f"program {self.program.number} serves this call"] if self.program is not None else []
        if self.program is None:
            lines = ["no program serves this call" if self.refusals else "there is no program yet"]
        lines += self.refusals
        return "\n".join([*lines, self.compiles] if self.compiles else lines)

    __repr__ = __str__


@attrs.frozen(eq=False)
class _Entry:
    """A program, and the call for which it was made."""

    compiled: CompiledSignature
    key: Signature
    reason: str
    seconds: float
    pins: tuple[str, ...]


@attrs.define(eq=False)
class Lookup:
    """The result of a lookup: the program, or the guards that failed."""

    compiled: CompiledSignature | None
    refusals: list[tuple[CompiledSignature, str]] = attrs.field(factory=list)


@attrs.define(eq=False)
class Shortcuts:
    """Programs of earlier calls, found by what is quickly seen of the arguments."""

    nested: dict[tuple[object, ...], Callable[[list[Any]], Any]] = attrs.field(factory=dict)
    """The last one by the arguments' structure and Python types."""
    plain: dict[object, Callable[[list[Any]], Any]] = attrs.field(factory=dict)
    """The same where nothing is nested, by their types."""
    lists: dict[tuple[object, ...], Callable[[list[Any]], Any]] = attrs.field(factory=dict)
    """The same for lists of any length."""
    data: dict[tuple[object, ...], DataCall] = attrs.field(factory=dict)
    """Those among them with values of data types."""

    owners: dict[tuple[str, object], CompiledSignature] = attrs.field(factory=dict)
    """The programs of `plain` and `nested`."""

    def clear(self) -> None:
        """Let the next calls go the long way."""
        for table in (self.nested, self.plain, self.lists, self.data, self.owners):
            table.clear()


class ProgramTable:
    """The programs of one function. Its callers hold a lock, but for `exact` and the shortcuts."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        """`name`: the function's, `names`: the parameters', for messages."""
        self.exact: dict[Signature, CompiledSignature] = {}
        self.shortcuts = Shortcuts()
        self._names = tuple(names)
        self._symbolic: dict[Signature, list[CompiledSignature]] = {}
        # The first call with lists, by its kind with lists of any length; None where the length must be known.
        self._list_signatures: dict[Signature, Signature | None] = {}
        self._list_sizes: Sizes = {}
        self._history: dict[Signature, SizeHistory] = {}
        self._of_fixed_sizes: set[Signature] = set()
        self._entries: list[_Entry] = []
        self.configuration = Configuration(name, self._names)

    def __bool__(self) -> bool:
        return bool(self.exact or self._entries)

    def clear(self) -> None:
        """Forget all programs."""
        for table in (self.exact, self._list_signatures, self._list_sizes, self._symbolic, self._history):
            table.clear()
        self._of_fixed_sizes.clear()
        self._entries.clear()
        self.shortcuts.clear()
        self.configuration.clear()

    # ---- which numbers of Python are static

    def with_static(self, described: list[ArgumentDescription]) -> list[ArgumentDescription]:
        """The arguments of a call, of which those are static whose values programs for such calls need."""
        if not self.configuration.by_kind:
            return described
        return self.configuration.static_arguments(_kind(tuple(d.key for d in described)), described)

    def configure(
        self, described: Sequence[ArgumentDescription], places: Places, error: TypeCheckError | None
    ) -> list[ArgumentDescription]:
        """The arguments of a call, as they are given, with these static, too; calls like it will be served so."""
        kind = _kind(tuple(d.key for d in described))
        self.configuration.add(kind, places, error)
        self.shortcuts.clear()  # which do not look at values
        return self.configuration.static_arguments(kind, described)

    def configured_call(
        self,
        given: list[ArgumentDescription],
        elaborate: Elaborate,
        make: Callable[[Signature, list[Argument], Places], CompiledSignature],
    ) -> tuple[list[ArgumentDescription], CompiledSignature]:
        """The result of `make` for a call by its signature, its arguments and those of them that may be static, and the
        arguments, of which those are static whose values the program needs."""
        described = self.with_static(given)
        while True:
            key, types, places = tuple(d.key for d in described), [d.argument for d in described], candidates(described)
            error = None
            try:
                return described, make(key, types, places)
            except ArgumentsSpecialize as found:
                needed, error = found.places, found.error
            except TypeCheckError as mistake:
                needed = search(described, places, lambda d: elaborate([a.argument for a in d], (), Places()))
                if not needed:
                    raise
                error = mistake
            described = self.configure(given, needed, error)

    def settled_arguments(self, given: list[ArgumentDescription], elaborate: Elaborate) -> list[ArgumentDescription]:
        """The arguments, of which those are static whose values the program needs; nothing is compiled."""
        described = self.with_static(given)
        while places := candidates(described):
            try:
                elaborate([d.argument for d in described], (), places)
            except ArgumentsSpecialize as found:
                described = self.configure(given, found.places, found.error)
            else:
                break
        return described

    # ---- which program

    def find(self, key: Signature, arguments: Sequence[Argument], symbolic: bool) -> Lookup:
        """The program that serves a call, or the guards of those that do not."""
        found = Lookup(self.exact.get(key))
        own = _kind(key)
        if found.compiled is None and symbolic and own not in self._of_fixed_sizes:
            for compiled in self._symbolic.get(own, ()):
                refusal = SymbolicSignature(compiled.typed).refusal(arguments)
                if refusal is None:
                    return Lookup(compiled)
                found.refusals.append((compiled, refusal))
        return found

    def varying_axes(self, key: Signature, arguments: Sequence[Argument], symbolic: bool, dynamic: bool) -> set[Place]:
        """The axes that are to be symbolic in a new program for a call: those of which calls had several sizes."""
        own, given = _kind(key), axes(arguments) if symbolic else {}
        if not symbolic or own in self._of_fixed_sizes or len(self._symbolic.get(own, ())) >= MANY_SYMBOLIC:
            return set()
        return set(given) if dynamic else self._history.get(own, SizeHistory(given)).with_call(given)

    def add(
        self, key: Signature, arguments: Sequence[Argument], compiled: CompiledSignature, entry: Compilation
    ) -> None:
        """Keep a program that was made for a call."""
        own = _kind(key)
        if entry.is_symbolic:
            self._symbolic.setdefault(own, []).append(compiled)
        else:
            self.exact[key] = compiled
        if entry.counts:
            given = axes(arguments)
            history = self._history.setdefault(own, SizeHistory(given))
            history.varying = history.with_call(given)
        self._entries.append(_Entry(compiled, key, entry.reason, entry.seconds, entry.pins))
        self.configuration.note_compilation(arguments)

    def fix_sizes(self, compiled: CompiledSignature) -> None:
        """Forget a program whose symbolic sizes code generation does not take: there is one for each size."""
        for own, known in self._symbolic.items():
            if compiled in known:
                known.remove(compiled)
                self._of_fixed_sizes.add(own)
        for key in [key for key, known in self.exact.items() if known is compiled]:  # of lists of any length
            del self.exact[key]
        self._entries = [entry for entry in self._entries if entry.compiled is not compiled]

    def with_any_length(
        self, key: Signature, arguments: Sequence[Argument], lists: Lists
    ) -> tuple[Signature, list[Argument]] | None:
        """The signature of a call and its arguments with lists of any length, if there was a call like it with lists of
        another length. The first such call is noted."""
        own, changed = _with_any_length(key, arguments, lists, self._list_sizes)
        if own != key:
            self._list_signatures.setdefault(_kind(own), key)
        return (own, changed) if self._had_other_length(key, own) else None

    def with_examples(
        self, key: Signature, arguments: Sequence[Argument], lists: Lists
    ) -> tuple[Signature, list[Argument]] | None:
        """The same for the lists of examples, from the first call on."""
        own, changed = _with_examples(key, arguments, lists, self._list_sizes)
        return (own, changed) if self._serves_examples(key, own) else None

    def _serves_examples(self, key: Signature, own: Signature) -> bool:
        return own != key and self._list_signatures.get(_kind(own), key) is not None

    def _had_other_length(self, key: Signature, own: Signature) -> bool:
        first = None if own == key else self._list_signatures.get(_kind(own))
        return first is not None and _kind(first) != _kind(key)

    def fix_lengths(self, key: Signature) -> None:
        """Note that there is no program for lists of any length with this signature."""
        self._list_signatures[_kind(key)] = None

    def forget_native_code(self) -> None:
        """Let the next calls generate code again."""
        for compiled in (*self.exact.values(), *(c for known in self._symbolic.values() for c in known)):
            compiled.forget_program()
        self.shortcuts.clear()

    # ---- what is told of it

    def reason(self, key: Signature) -> str:
        """The reason why a call needs a new program, if none serves it."""
        if not self._entries:
            return "for the first call"
        found = [differences(key, entry.key, self._names) for entry in self._entries]
        number = min(range(len(found)), key=lambda index: (len(found[index]), -index))
        if not found[number]:
            return "for another level of optimization"
        same = _kind(self._entries[number].key) == _kind(key)
        if same and _kind(key) in self._of_fixed_sizes:
            return f"{'; '.join(found[number])}, and its sizes must be numbers"
        return "; ".join(found[number])

    def programs(self) -> Programs:
        """All of them."""
        return Programs(self._program(number, entry) for number, entry in enumerate(self._entries, 1))

    def explain(
        self,
        key: Signature,
        arguments: Sequence[Argument],
        symbolic: bool,
        dynamic: bool,
        last: CompiledSignature | None,
        lists: Lists,
    ) -> Explanation:
        """The program that serves a call, or what would be compiled. `last`: the program that the call tries first,
        if any."""
        found = self.find(key, arguments, symbolic)
        known = self._symbolic.get(_kind(key), ())
        if last is not None and last in known and SymbolicSignature(last.typed).refusal(arguments) is None:
            found = Lookup(last)
        of_examples = _with_examples(key, arguments, lists, dict(self._list_sizes))
        general = _with_any_length(key, arguments, lists, dict(self._list_sizes))
        if found.compiled is None and self._serves_examples(key, of_examples[0]):
            key, arguments = of_examples
            found = self.find(key, arguments, symbolic)
        elif found.compiled is None and self._had_other_length(key, general[0]):
            key, arguments = general
            found = self.find(key, arguments, symbolic)
        programs = {id(entry.compiled): (number, entry) for number, entry in enumerate(self._entries, 1)}
        if found.compiled is not None:
            number, entry = programs[id(found.compiled)]
            return Explanation(self._program(number, entry), (), None)
        guards = {id(compiled): refusal for compiled, refusal in found.refusals}
        refusals = []
        for number, entry in enumerate(self._entries, 1):
            refusal = guards.get(id(entry.compiled)) or "; ".join(differences(key, entry.key, self._names))
            refusals.append(f"program {number}: {refusal}")
        varying = self.varying_axes(key, arguments, symbolic, dynamic)
        shown = ", ".join(self._place(place) for place in sorted(varying, key=lambda p: (p.parameter, p.path, p.axis)))
        text = f"one would be compiled with {shown} symbolic" if varying else "one would be compiled for these sizes"
        return Explanation(None, tuple(refusals), text)

    def _place(self, place: Place) -> str:
        name = self._names[place.parameter] if place.parameter < len(self._names) else "the cotangent"
        return f"axis {place.axis} of {name}{''.join(f'[{index}]' for index in place.path)}"

    def _program(self, number: int, entry: _Entry) -> Program:
        compiled = entry.compiled
        types = [
            f"{parameter.name}: {show(type_)}"
            for parameter, type_ in zip(compiled.typed.main.parameters, _types(compiled), strict=True)
        ]
        static = static_text(entry.key, self._names)
        guards = [str(constraint) for constraint in compiled.typed.where]
        took = compiled.seconds
        seconds = None if took is None else entry.seconds + took
        signature = ", ".join([*types, *static]) or "no arguments"
        return Program(number, signature, tuple(guards), (*static, *entry.pins), entry.reason, compiled.uses, seconds)


@attrs.frozen(eq=False)
class Compilation:
    """The record of a compilation: its reason, the time of type inference, the sizes that had to be numbers, and
    whether the call `counts` where it is decided which axes vary."""

    reason: str
    seconds: float
    pins: tuple[str, ...] = ()
    is_symbolic: bool = False
    counts: bool = True


@attrs.frozen
class Lists:
    """The positions of a function's parameters whose lists are of examples, and of those whose lists keep their
    lengths."""

    of_examples: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()


def _with_any_length(
    key: Signature, arguments: Sequence[Argument], lists: Lists, sizes: Sizes
) -> tuple[Signature, list[Argument]]:
    """A signature and its arguments with lists of any length in place of those whose elements are alike."""
    changed = [
        (k, a) if n in lists.kept else of_any_length(k, a, (n,), sizes, examples=n in lists.of_examples)
        for n, (k, a) in enumerate(zip(key, arguments, strict=True))
    ]
    return tuple(k for k, _ in changed), [a for _, a in changed]


def _with_examples(
    key: Signature, arguments: Sequence[Argument], lists: Lists, sizes: Sizes
) -> tuple[Signature, list[Argument]]:
    """The same for lists of examples only."""
    others = frozenset(range(len(key))) - lists.of_examples
    return _with_any_length(key, arguments, attrs.evolve(lists, kept=lists.kept | others), sizes)


def _types(compiled: CompiledSignature) -> Sequence[Any]:
    return compiled.parameters or [parameter.type for parameter in compiled.typed.main.parameters]


def _kind(key: Signature) -> Signature:
    return tuple(map(kind, key))


def _times(count: int) -> str:
    return "never used" if not count else "used once" if count == 1 else f"used {count} times"
