"""Parameters as effects: programs name them where they use them, and a handler around them has their values.

@relay
def layer(x):
    w = relay.param("w", (x.shape[1], 10), lambda shape: 0.1 * relay.rng.normal(shape))
    return relay.relu(x @ w)

params = relay.params.init(layer)(relay.random.key(0), x)    # {"w": ..}
y = relay.params.apply(layer)(params, x)
"""

from __future__ import annotations

from typing import Any

from relay.api.effects.handlers import effectful, handled, handler
from relay.api.function import RelayFunction
from relay.api.templates import with_checked_options

_INIT = handler("params.init", "key", "init_params__")
_APPLY = handler("params.apply", "params", "with_params__")


@with_checked_options
def init(f: Any) -> RelayFunction:
    """The function (key, *args) that returns the parameters of f at these arguments, a dict of tensors by name, in the
    order of their first uses. Their initializers draw with `key`, (uint32, (2,)); f itself does not run, and the
    arguments matter by their types only.

    Raises TypeCheckError where an initializer uses a value that f computes, TypeMismatch for two parameters of one name
    that differ in their types."""
    return handled(_INIT, f)


@with_checked_options
def apply(f: Any) -> RelayFunction:
    """The function (params, *args) that is f(*args) with these values for its parameters, and those of all functions
    that it calls. params: a dict of tensors by name.

    Raises TypeCheckError for a parameter that has no value, TypeMismatch for one of another shape."""
    return handled(_APPLY, f)


init.__relay_template__ = _INIT  # type: ignore[attr-defined]
apply.__relay_template__ = _APPLY  # type: ignore[attr-defined]

use = effectful("params.use", "with params.use(values): in programs, the parameters of a block have these values.")

param = effectful(
    "param",
    "param(name, shape, init): the parameter of this name, a tensor of this shape, for which `relay.params.apply` has"
    " the value; `init(shape)` makes the first one. Every use of a name is the same parameter.",
)

__all__ = ["apply", "init", "param", "use"]
