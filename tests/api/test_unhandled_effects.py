"""Calls without handlers, as `relay check` finds them."""

from __future__ import annotations

from relay.api.static_check import check_text

TEXT = """\
import numpy as np
import relay

@relay.relay
def noisy(x):
    return x + relay.rng.normal(x.shape)

@relay.relay
def layer(x):
    return x @ relay.param("w", (3, 2), relay.ones)

@relay.relay
def both(key, x):
    return relay.rng.handle(noisy)(key, x)

x = np.ones(3, np.float32)
key = relay.random.key(0)
noisy(x)
layer(x)
both(key, x)
relay.rng.handle(noisy)(key, x)
handled = relay.rng.handle(noisy)
handled(key, x)
"""


def test_calls_at_the_top_of_a_file() -> None:
    found = [(d.span.line, d.message, d.help) for d in check_text(TEXT, "f.py") if d.span is not None]
    assert found == [
        (
            18,
            "noisy draws with an implicit key, and no handler around this call gives one",
            "relay.rng.handle(noisy)(key, ..)",
        ),
        (
            19,
            "layer has parameters, and no handler around this call has values",
            "relay.params.apply(layer)(params, ..)",
        ),
    ]
