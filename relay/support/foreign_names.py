"""Names of NumPy, JAX and PyTorch that Relay does not have, and what to write in their place."""

from __future__ import annotations

from collections.abc import Container, Iterable

_PYTHON_VALUE = "a program has no Python values of tensors; use float(x), int(x) or bool(x), or return x"
_NO_DEVICE = "leave it out: programs run where their arguments are (relay.device_put)"
_NO_MEMORY = "values have no place in memory: leave it out; the dtype is x.dtype, the number of elements x.size"
_VALUES = "values never change: assign the result, `x = x + y`"

MODULE = {
    "scan": "write relay.lax.scan, or a `for` that appends, and relay.stack",
    "fori_loop": "write relay.lax.fori_loop, or a `for`",
    "while_loop": "write relay.lax.while_loop, or a `while`",
    "cond": "write relay.lax.cond, or an `if`",
    "switch": "write `if` and `elif`, or `match`",
    "tree_map": "write relay.tree.map(f, tree)",
    "pmap": "one program runs on one machine, with several threads: RELAY_NUM_THREADS",
    "numpy": "write np.name with NumPy itself, or relay.name",
    "np": "write np.name with NumPy itself, or relay.name",
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
    "append": "use np.concatenate([xs, [v]]); in a loop, append to a list and call np.array or relay.stack at the end",
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
    "tolist": _PYTHON_VALUE,
    "numpy": "a tensor in a program is not a NumPy array; return it, and convert the result",
    "detach": "use relay.stop_gradient(x)",
    "backward": "use relay.grad(f)",
    "grad": "use relay.grad(f)",
    "requires_grad": "relay.grad(f) is the derivative with respect to parameters; leave it out",
    "requires_grad_": "relay.grad(f) is the derivative with respect to parameters; leave it out",
    "value": "only a reference has it: `relay.ref(x)` makes one",
    "append": "write a list as [..]; tensors have a fixed length",
    "t": "write x.T",
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
    "block_until_ready": "leave it out: a call returns when its result is there",
    "masked_fill": "use relay.where(mask, value, x)",
    "gather": "use relay.take_along_axis(x, indices, axis=dim)",
    "index_select": "use relay.take(x, indices, axis=dim)",
    "clamp": "use relay.clip(x, low, high)",
    "expand": "use relay.broadcast_to(x, shape)",
    "chunk": "use relay.split(x, parts, axis=dim)",
    "flat": "use x.ravel()",
    "fill": "use np.full_like(x, value)",
    "resize": "use np.resize(x, shape), which is a new array",
    "put": "assign by indices: x[indices] = values",
    "partition": "sort: np.sort(x) has each element in its place",
    "argpartition": "sort: np.argsort(x); relay.topk(x, k) finds the largest ones",
    "itemsize": _NO_MEMORY,
    "nbytes": _NO_MEMORY,
    "strides": _NO_MEMORY,
    "flags": _NO_MEMORY,
    "data": _NO_MEMORY,
    "base": _NO_MEMORY,
    "ctypes": _NO_MEMORY,
    "byteswap": _NO_MEMORY,
    "getfield": _NO_MEMORY,
    "setfield": _NO_MEMORY,
    "setflags": _NO_MEMORY,
    "tobytes": "return x, and write it outside",
    "tofile": "return x, and write it outside",
    "dump": "return x, and write it outside",
    "dumps": "return x, and write it outside",
    "to_device": _NO_DEVICE,
    "add_": _VALUES,
    "sub_": _VALUES,
    "mul_": _VALUES,
    "div_": _VALUES,
    "zero_": _VALUES,
    "fill_": _VALUES,
    "copy_": _VALUES,
}
"""Attributes of other libraries' arrays."""

SYNONYMS = {
    "dim": "axis",
    "keepdim": "keepdims",
    "kernel_size": "kernel",
    "argnums": "wrt",
}
"""Names of arguments of JAX and PyTorch that mean what Relay's or NumPy's do, and are taken for these."""

ARGUMENTS = {
    **SYNONYMS,
    "dims": "axis",
    "axes": "axis",
    "argnum": "wrt",
    "other": "y",
    "input": "x",
    "a": "x",
}
"""Names of arguments of other libraries, and those that Relay or NumPy have for them."""


ARGUMENT_ADVICE = {
    "out": "values never change: assign the result",
    "where": "choose afterwards: np.where(mask, result, y)",
    "dtype": "convert: x.astype(dtype)",
    "order": "elements follow each other along the last axis; np.transpose(x) turns it",
    "initial": "combine the result with it",
    "mean": "it is computed once in any case",
    "casting": "leave it out: conversions are written, x.astype(dtype)",
    "subok": "leave it out: arrays are of one class",
    "like": "leave it out: arrays are of one class",
    "device": _NO_DEVICE,
    "copy": "leave it out: values never change",
    "inplace": "leave it out: values never change; assign the result",
    "requires_grad": "relay.grad(f) is the derivative with respect to parameters; leave it out",
}
"""Arguments that functions of NumPy and PyTorch take, and what to write where Relay's do not."""


def own_name(name: str, names: Container[str]) -> str:
    """The name that a function has for an argument, of which JAX or PyTorch may have another one."""
    other = SYNONYMS.get(name)
    return other if other is not None and name not in names and other in names else name


def argument_help(name: str, names: Iterable[str]) -> str | None:
    """The advice for an argument that a function does not have; None if there is none. `names`: those that it has."""
    import difflib

    known = list(names)
    other = ARGUMENTS.get(name)
    close = [other] if other in known else difflib.get_close_matches(name, known, n=1)
    return f"write {close[0]}=, not {name}=" if close else ARGUMENT_ADVICE.get(name)
