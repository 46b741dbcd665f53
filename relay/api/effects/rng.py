"""Random numbers with implicit keys: programs draw, and a handler around them has the key.

    @relay
    def noisy(x):
        return x + relay.rng.normal(x.shape)

    relay.rng.handle(noisy)(relay.random.key(0), x)

In a program, `with relay.rng.use(key):` is a handler of a block.

Each draw splits the handler's key in two (Claessen and Palka, 2013) and takes one half, in the order in which the
program draws; so a key gives the same numbers in every run.
"""

from __future__ import annotations

from typing import Any

from relay.api.effects.handlers import effectful, handled, handler
from relay.api.function import RelayFunction
from relay.api.templates import with_checked_options

_TEMPLATE = handler("rng.handle", "key", "with_key__")


@with_checked_options
def handle(f: Any) -> RelayFunction:
    """The function (key, *args) that is f(*args) with `key` for its draws, and those of all functions that it calls.
    key: (uint32, (2,)).

    Raises TypeMismatch for another key."""
    return handled(_TEMPLATE, f)


handle.__relay_template__ = _TEMPLATE  # type: ignore[attr-defined]

key = effectful("rng.key", "key(): a key of its own, (uint32, (2,)), for functions of `relay.random` and dropout.")
use = effectful("rng.use", "with rng.use(key): in programs, the draws of a block have this key; see `handle`.")
bernoulli = effectful("rng.bernoulli", "bernoulli(p, shape=None): see `relay.random.bernoulli`.")
bits = effectful("rng.bits", "bits(shape=()): see `relay.random.bits`.")
categorical = effectful("rng.categorical", "categorical(logits, axis=-1, shape=None): see `relay.random.categorical`.")
exponential = effectful("rng.exponential", "exponential(shape=(), dtype=None): see `relay.random.exponential`.")
gumbel = effectful("rng.gumbel", "gumbel(shape=(), dtype=None): see `relay.random.gumbel`.")
normal = effectful("rng.normal", "normal(shape=(), dtype=None): see `relay.random.normal`.")
permutation = effectful("rng.permutation", "permutation(x): see `relay.random.permutation`.")
randint = effectful("rng.randint", "randint(shape, minval, maxval): see `relay.random.randint`.")
uniform = effectful("rng.uniform", "uniform(shape=(), ..): see `relay.random.uniform`.")

__all__ = [
    *("bernoulli", "bits", "categorical", "exponential", "gumbel", "handle", "key", "normal", "permutation"),
    *("randint", "uniform", "use"),
]
