"""Dispatch of calls, with a fast path for repeated signatures.

The description of a call's arguments costs much more than running a small program. So a call is remembered by what
is quickly seen of its arguments, their Python types and structure, and the next one like it gives them to the same
program at once. A program refuses arguments that it is not for; such a call goes the long way, as the first did.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relay.calling.array import Array
from relay.calling.data_marshalling import Unpackable
from relay.calling.devices.repeated_calls import repeat_on_gpu
from relay.calling.fast_path import (
    DIRECT,
    GUARD_FAILURE,
    NotCacheable,
    Repeat,
    flatten,
    flatten_configured,
    flatten_with_static,
    holds_data,
    holds_lists,
    holds_references,
    repeat,
    repeat_with_data,
    repeat_with_references,
    unwrapping_call,
)
from relay.calling.programs.program_table import ProgramTable
from relay.calling.reference_marshalling import lists_as_leaves
from relay.calling.results import Values, wrap
from relay.compilation.stages import CompiledSignature, ResultBuilder
from relay.errors import InternalError
from relay.ir.definition import Definition
from relay.ir.expr import Function
from relay.support import python_mode

_MODES = python_mode.entered

_KEYWORDS = "keywords"
"""The beginning of the kinds of arguments where some have keywords."""


class ProgramDispatcher(abc.ABC):
    """Dispatch of calls: takes the arguments of `function` and `seeds` cotangents after them, and runs the programs of
    earlier calls again.

    It is a base class rather than an object that a function holds: handing the call on to one would make the fastest
    calls a tenth slower.
    """

    __name__: str

    def __init__(self, function: Function, seeds: int) -> None:
        self._function = function
        self._seeds = seeds
        self._has_static = any(parameter.static for parameter in function.signature)
        self._programs = ProgramTable(function.name, [parameter.name for parameter in function.parameters])
        self._shortcuts = self._programs.shortcuts
        self._direct = self._shortcuts.plain  # a call through attributes of attributes takes noticeably longer
        self._orders: dict[tuple[object, ...], tuple[str, ...]] = {}  # of keywords, in that of the parameters

    @abc.abstractmethod
    def _compile_call(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[CompiledSignature, Values]:
        """The long way: a program that code generation takes, for these arguments, and their run-time values."""

    @abc.abstractmethod
    def _run_fallback(self, error: InternalError, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The result of a call that cannot be compiled. Raises the error, unless the interpreter is to run it."""

    @abc.abstractmethod
    def _choose(
        self, lowered: CompiledSignature, arguments: Sequence[Any], keywords: Mapping[str, Any], interpreted: bool
    ) -> Any:
        """The result of a call that returns functions that are selected at run time."""

    @abc.abstractmethod
    def make_once(self, key: object, make: Callable[[], Definition]) -> Any:
        """A decorated function that is made of this one; the same one each time."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the compiled program; it is compiled at the first call with new dtypes or shapes."""
        __tracebackhide__ = True
        if _MODES and (mode := python_mode.active.get()) is not None:
            return mode.call(self, arguments, keywords)
        leaves: list[Any] = []
        kinds: list[Any] = []
        if not keywords:
            given: tuple[Any, ...] | None = arguments
            # A tuple of types takes longer than a type, and most functions that are called often take one array.
            call = self._direct.get(type(arguments[0]) if len(arguments) == 1 else tuple(map(type, arguments)))
            if call is not None:
                result = call(list(arguments))
                if result is not GUARD_FAILURE:
                    return result
        else:
            given = self._in_order(arguments, keywords, kinds)
        plain = given is not None and self._flatten(given, leaves, kinds)
        signature = tuple(kinds)
        if plain:
            known = self._shortcuts.nested.get(signature)
            if known is not None:
                result = known(leaves)
                if result is not GUARD_FAILURE:
                    return result
            elif self._shortcuts.lists and (together := lists_as_leaves(signature, leaves)) is not None:
                listed = self._shortcuts.lists.get(together[0])
                result = GUARD_FAILURE if listed is None else listed(together[1])
                if result is not GUARD_FAILURE:
                    return result
        try:
            lowered, values = self._compile_call(arguments, keywords)
            if lowered.chooses_functions:
                return self._choose(lowered, arguments, keywords, False)
            program = lowered.program
        except InternalError as error:
            return self._run_fallback(error, arguments, keywords)
        try:
            found = program(values)
        finally:
            values.give_back(lowered.parameters)
        result = wrap(found, lowered.result)
        if lowered.returned is not None:
            result = lowered.returned(result, self)
        if lowered.is_for_gpu:
            if not keywords:
                self._remember_on_gpu(arguments, lowered)
        elif plain:
            assert given is not None
            self._remember(given, signature, leaves, lowered)
        return result

    def _last_program(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> CompiledSignature | None:
        """The program that a call with such arguments tries first: that of the last call like it."""
        owners, kinds = self._shortcuts.owners, list[Any]()
        if not keywords:
            found = owners.get(("plain", type(arguments[0]) if len(arguments) == 1 else tuple(map(type, arguments))))
            if found is not None:
                return found
        given = tuple(arguments) if not keywords else self._in_order(tuple(arguments), keywords, kinds)
        is_plain = given is not None and self._flatten(given, [], kinds)
        return owners.get(("nested", tuple(kinds))) if is_plain else None

    def _flatten(self, given: tuple[Any, ...], leaves: list[Any], kinds: list[Any]) -> bool:
        """As `flatten`, also for static parameters, if these arguments are in the order of all parameters."""
        try:
            if not self._has_static:
                static_paths = self._programs.configuration.paths
                if not static_paths:
                    return flatten(given, leaves, kinds)
                return flatten_configured(given, static_paths, leaves, kinds)
            static = [parameter.static for parameter in self._function.signature]
            return len(given) <= len(static) and flatten_with_static(given, static, leaves, kinds)
        except RecursionError:  # which is told where the arguments are described
            return False

    def _in_order(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any], kinds: list[Any]
    ) -> tuple[Any, ...] | None:
        """The arguments in the order of the parameters; None where a call needs more than that. The parameters that
        they are for are added to `kinds`, since the program depends on which are missing."""
        pattern = len(arguments), *keywords
        order = self._orders.get(pattern)
        if order is None:
            names = [parameter.name for parameter in self._function.parameters]
            missing = len(arguments) + len(keywords) < len(names)
            if self._seeds or not {*keywords} <= {*names[len(arguments) :]} or (missing and self._has_static):
                return None
            order = self._orders[pattern] = tuple(name for name in names if name in keywords)
        kinds += _KEYWORDS, (len(arguments), *order)
        return (*arguments, *[keywords[name] for name in order])

    def _remember(
        self, arguments: Sequence[Any], kinds: tuple[object, ...], leaves: Sequence[Any], lowered: CompiledSignature
    ) -> None:
        """Try this program first at the next call with arguments of these kinds."""
        if holds_data(kinds):
            if lowered.returned is not None:
                return
            self._remember_data(kinds, leaves, lowered)
            return
        values = kinds[2:] if kinds and kinds[0] == _KEYWORDS else kinds
        if any(map(holds_lists, lowered.parameters)):
            self._remember_lists(kinds, leaves, lowered)
            return
        make, given = (repeat_with_references, values) if holds_references(kinds) else (repeat, kinds)
        try:
            call = make(lowered.program, given, lowered.parameters, lowered.result)
        except NotCacheable:
            return
        if (returned := lowered.returned) is not None:
            call = self._call_with_closures(call, returned)
        if len(kinds) != len(arguments) or not DIRECT.issuperset(map(type, arguments)):
            self._shortcuts.nested[kinds] = call
            self._shortcuts.owners["nested", kinds] = lowered
        else:  # nothing is nested
            wrapped = [position for position, argument in enumerate(arguments) if isinstance(argument, Array)]
            key = type(arguments[0]) if len(arguments) == 1 else tuple(map(type, arguments))
            self._direct[key] = unwrapping_call(call, wrapped) if wrapped else call
            self._shortcuts.owners["plain", key] = lowered

    def _remember_on_gpu(self, arguments: Sequence[Any], lowered: CompiledSignature) -> None:
        """The same for a program for a GPU, and arguments that are arrays."""
        if lowered.returned is None and not lowered.donated and (call := repeat_on_gpu(arguments, lowered)) is not None:
            key = type(arguments[0]) if len(arguments) == 1 else tuple(map(type, arguments))
            self._direct[key] = call
            self._shortcuts.owners["plain", key] = lowered

    def _remember_lists(self, kinds: tuple[object, ...], leaves: Sequence[Any], lowered: CompiledSignature) -> None:
        """The same for programs that take lists of any length."""
        together = lists_as_leaves(kinds, leaves)
        if together is None:
            return
        own = together[0]
        values = own[2:] if own[0] == _KEYWORDS else own
        try:
            call = repeat_with_references(lowered.program, values, lowered.parameters, lowered.result)
        except NotCacheable:
            return
        self._shortcuts.lists[own] = (
            call if lowered.returned is None else self._call_with_closures(call, lowered.returned)
        )

    def _call_with_closures(self, call: Repeat, returned: ResultBuilder) -> Repeat:
        def run(leaves: list[Any]) -> Any:
            values = call(leaves)
            return GUARD_FAILURE if values is GUARD_FAILURE else returned(values, self)

        return run

    def _remember_data(self, kinds: tuple[object, ...], leaves: Sequence[Any], lowered: CompiledSignature) -> None:
        """The same for calls with values of data types."""
        shortcuts = self._shortcuts
        table = shortcuts.nested
        if any(map(holds_lists, lowered.parameters)):
            together = lists_as_leaves(kinds, leaves)
            if together is None:
                return
            (kinds, leaves), table = together, shortcuts.lists
        known = shortcuts.data.get(kinds)
        values = kinds[2:] if kinds[0] == _KEYWORDS else kinds
        try:
            if known is None or known.program is not lowered.program:
                known, call = repeat_with_data(lowered.program, values, lowered.result)
                known.most_objects = lowered.most_objects
                known.learn(leaves)
                shortcuts.data[kinds], table[kinds] = known, call
            else:
                known.most_objects = lowered.most_objects
                known.learn(leaves)
        except (NotCacheable, Unpackable):
            return
