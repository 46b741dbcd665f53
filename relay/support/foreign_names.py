"""Names of NumPy, JAX and PyTorch that Relay does not have, and what to write in their place."""

from __future__ import annotations

from collections.abc import Iterable

_PYTHON_VALUE = "a program has no Python values of tensors; use float(x), int(x) or bool(x), or return x"
_NO_DEVICE = "leave it out: programs run where their arguments are (relay.device_put)"
_VALUES = "values never change: assign the result, `x = x + y`"

MODULE = {
    "scan": "write a `for` that appends, and relay.stack",
    "fori_loop": "write a `for`",
    "while_loop": "write a `while`",
    "cond": "write an `if`",
    "switch": "write `if` and `elif`, or `match`",
    "tree_map": "build the structure: {name: f(x) for name, x in tree.items()}, [f(x) for x in xs]",
    "jit": "decorated functions are compiled",
    "pmap": "one program runs on one machine, with several threads: RELAY_NUM_THREADS",
    "numpy": "write np.name with NumPy itself, or relay.name",
    "np": "write np.name with NumPy itself, or relay.name",
    "nn": "its functions are operators: relay.relu, relay.softmax, relay.conv2d",
    "lax": "write `if`, `for` and `while`; its functions are operators: relay.conv2d, relay.cumsum",
    "optim": "write the step: params = [w - rate * g for w, g in zip(params, gradients)]",
    "no_grad": "only relay.grad(f) differentiates; relay.stop_gradient(x) holds a value constant",
    "jacfwd": "use relay.jacobian",
    "jacrev": "use relay.jacobian",
    "custom_vjp": "write f.def_gradient",
    "custom_jvp": "write f.def_gradient",
    "remat": "use relay.checkpoint",
    "PRNGKey": "use relay.random.key(seed)",
    "manual_seed": "random numbers take a key: relay.random.key(seed)",
    "randn": "use relay.random.normal(key, shape)",
    "rand": "use relay.random.uniform(key, shape)",
    "tensor": "use np.array(..)",
    "array": "use np.array(..)",
    "asarray": "use np.array(..)",
    "cat": "use relay.concatenate",
    "append": "use np.concatenate([xs, [v]]); in a loop, append to a list and call np.array or relay.stack at the end",
    "unsqueeze": "use relay.expand_dims(x, axis)",
    "mm": "write `@`",
    "bmm": "write `@`",
    "device_put": _NO_DEVICE,
    "block_until_ready": "leave it out: a call returns when its result is there",
    "Module": "write a class with @relay.data, or pass the parameters as an argument",
    "Parameter": "pass parameters as arguments: relay.grad(f) is the derivative with respect to them",
}
"""Names of other libraries that the language spells otherwise."""

METHODS = {
    "at": "assign, `y = x; y[i] = v`; add at several places: relay.scatter_add(x, indices, values)",
    "item": _PYTHON_VALUE,
    "tolist": _PYTHON_VALUE,
    "numpy": "a tensor in a program is not a NumPy array; return it, and convert the result",
    "detach": "use relay.stop_gradient(x)",
    "backward": "use relay.grad(f)",
    "grad": "use relay.grad(f)",
    "requires_grad": "relay.grad(f) is the derivative with respect to parameters; leave it out",
    "requires_grad_": "relay.grad(f) is the derivative with respect to parameters; leave it out",
    "value": "only a reference has it: `relay.ref(x)` makes one",
    "view": "use x.reshape(..)",
    "permute": "use relay.transpose(x, axes)",
    "unsqueeze": "use relay.expand_dims(x, axis)",
    "append": "write a list as [..]; tensors have a fixed length",
    "t": "write x.T",
    "mT": "use relay.swapaxes(x, -1, -2)",
    "dim": "use x.ndim",
    "numel": "use x.size",
    "float": "use x.astype(relay.Float32)",
    "double": "use x.astype(relay.Float64)",
    "half": "use x.astype(relay.Float16)",
    "int": "use x.astype(relay.Int32)",
    "long": "use x.astype(relay.Int64)",
    "bool": "use x.astype(relay.Bool)",
    "type": "use x.astype(dtype)",
    "to": "use x.astype(dtype); programs run where their arguments are (relay.device_put)",
    "cuda": _NO_DEVICE,
    "cpu": _NO_DEVICE,
    "device": _NO_DEVICE,
    "contiguous": "leave it out",
    "block_until_ready": "leave it out: a call returns when its result is there",
    "masked_fill": "use relay.where(mask, value, x)",
    "add_": _VALUES,
    "sub_": _VALUES,
    "mul_": _VALUES,
    "div_": _VALUES,
    "zero_": _VALUES,
    "fill_": _VALUES,
    "copy_": _VALUES,
}
"""Attributes of other libraries' arrays."""

ARGUMENTS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "axes": "axis",
    "argnums": "wrt",
    "argnum": "wrt",
    "other": "y",
    "input": "x",
    "a": "x",
}
"""Names of arguments of other libraries, and those that Relay or NumPy have for them."""


def argument_help(name: str, names: Iterable[str]) -> str | None:
    """The advice for an argument that a function does not have; None if there is none. `names`: its parameters.
    `names`: those that it has."""
    import difflib

    known = list(names)
    other = ARGUMENTS.get(name)
    close = [other] if other in known else difflib.get_close_matches(name, known, n=1)
    return f"write {close[0]}=, not {name}=" if close else None
