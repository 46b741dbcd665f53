"""The declaration of passes: functions from module to module that know what their module assumes of its sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeAlias
from weakref import WeakKeyDictionary

from relay.ir.expr import Derivative, Function, Module
from relay.ir.sizes.facts import assume_facts
from relay.ir.traverse import walk
from relay.ir.types import DataDefinition

_Options = ParamSpec("_Options")
_Pass: TypeAlias = "Callable[Concatenate[Module, _Options], Module]"


def module_pass(change: _Pass[_Options]) -> _Pass[_Options]:
    """Make a pass of a function: the facts in force are those of its module, alone and in a pipeline."""

    @functools.wraps(change)
    def checked_pass(module: Module, /, *arguments: _Options.args, **options: _Options.kwargs) -> Module:
        with assume_facts(module.where):
            return change(module, *arguments, **options)

    return checked_pass


def pass_about(*subjects: type) -> Callable[[_Pass[_Options]], _Pass[_Options]]:
    """As `module_pass`, for a pass about these nodes: a module with none of them stays as it is."""
    wanted = frozenset(subjects)

    def declare(change: _Pass[_Options]) -> _Pass[_Options]:
        inside = module_pass(change)

        @functools.wraps(change)
        def checked_pass(module: Module, /, *arguments: _Options.args, **options: _Options.kwargs) -> Module:
            return module if wanted.isdisjoint(node_kinds(module)) else inside(module, *arguments, **options)

        return checked_pass

    return declare


_KINDS: WeakKeyDictionary[Module, frozenset[type]] = WeakKeyDictionary()


def node_kinds(module: Module) -> frozenset[type]:
    """The classes of the expressions in a module, Derivative if there is one to be made, and DataDefinition if it has
    data types."""
    found = _KINDS.get(module)
    if found is None:
        functions = [f for f in module.functions.values() if isinstance(f, Function)]
        kinds: set[type] = {binding.value.__class__ for f in functions for binding in walk(f.body)}
        if len(functions) < len(module.functions):
            kinds.add(Derivative)
        if module.data:
            kinds.add(DataDefinition)
        found = _KINDS[module] = frozenset(kinds)
    return found
