"""Options of functions of texts."""

from __future__ import annotations

import pytest

import relay as rl
from relay.compilation.options import Options
from relay.errors import CompileError, FrontendError


def test_options_in_texts_are_those_of_the_functions() -> None:
    text = (
        "@relay(opt_level=0, static_argnames=('n',))\ndef f(x, n):\n    return x * n\n\ndef g(x):\n    return f(x, 3)\n"
    )
    functions = rl.from_source(text)
    f, g = functions["f"], functions["g"]
    assert (f._options.opt_level, f._options.static_argnames) == (0, ("n",))
    assert (g._options.opt_level, g._options.static_argnames) == (Options().opt_level, ())
    assert float(g(2.0)) == 6.0
    refused = [
        ("@relay(level=3)", CompileError, "no option 'level'"),
        ("@relay(opt_level=LEVEL)", FrontendError, "the options of a text's functions are literals"),
        ("@functools.cache", FrontendError, "the decorators of a text are `@relay`"),
    ]
    for decorator, error, message in refused:
        with pytest.raises(error, match=message):
            rl.from_source(f"{decorator}\ndef f(x):\n    return x\n")
