"""The declaration of passes: functions from module to module that know what their module assumes of its sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from relay.ir.expr import Module
from relay.ir.sizes.facts import assume_facts

_Options = ParamSpec("_Options")


def module_pass(
    change: Callable[Concatenate[Module, _Options], Module],
) -> Callable[Concatenate[Module, _Options], Module]:
    """Make a pass of a function: the facts in force are those of its module, alone and in a pipeline."""

    @functools.wraps(change)
    def checked_pass(module: Module, /, *arguments: _Options.args, **options: _Options.kwargs) -> Module:
        with assume_facts(module.where):
            return change(module, *arguments, **options)

    return checked_pass
