"""Random numbers, drawn with keys that the program passes on: `relay.random.normal(key, (3,))`.

    key = relay.random.key(0)
    first, second = relay.random.split(key)       # a key is used once, for drawing or for splitting
    x = relay.random.uniform(first, (3, 4))

A key gives the same numbers in the interpreter, in compiled programs, on every target and in every run.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from relay.ops.signatures import random_bernoulli as bernoulli
    from relay.ops.signatures import random_bits as bits
    from relay.ops.signatures import random_categorical as categorical
    from relay.ops.signatures import random_exponential as exponential
    from relay.ops.signatures import random_gumbel as gumbel
    from relay.ops.signatures import random_key as key
    from relay.ops.signatures import random_normal as normal
    from relay.ops.signatures import random_permutation as permutation
    from relay.ops.signatures import random_randint as randint
    from relay.ops.signatures import random_split as split
    from relay.ops.signatures import random_uniform as uniform
else:
    from relay.ops.random.distributions import random_bernoulli as bernoulli
    from relay.ops.random.distributions import random_categorical as categorical
    from relay.ops.random.distributions import random_permutation as permutation
    from relay.ops.random.generation import random_bits as bits
    from relay.ops.random.generation import random_exponential as exponential
    from relay.ops.random.generation import random_gumbel as gumbel
    from relay.ops.random.generation import random_key as key
    from relay.ops.random.generation import random_normal as normal
    from relay.ops.random.generation import random_randint as randint
    from relay.ops.random.generation import random_split as split
    from relay.ops.random.generation import random_uniform as uniform

__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "exponential",
    "gumbel",
    "key",
    "normal",
    "permutation",
    "randint",
    "split",
    "uniform",
]
