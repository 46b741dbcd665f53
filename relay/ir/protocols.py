"""The attributes by which Python objects say what they are to Relay: every `__relay_..__` name, and what carries it.

`relay.ir` is the lowest layer that reads one of them. Users need none: decorators and classes of Relay set them.
"""

from __future__ import annotations

PROTOCOLS = {
    "__relay__": "functions: the surface definition of a decorated function, or of a derivative",
    "__relay_array__": "classes of arrays: values are Relay's own arrays, read without copying",
    "__relay_bound__": "methods of values of data types: True, so that the value is an argument of theirs",
    "__relay_builtin__": "Python functions that mean something of their own in programs: its name, as `ref` or `grad`",
    "__relay_closure__": "functions that programs returned: their code and the values that it captured",
    "__relay_constructor__": "classes of values of data types: the constructor's name",
    "__relay_data__": "classes decorated with `relay.data`: the data type with its Python classes",
    "__relay_file__": "modules that are read without being run: True",
    "__relay_function__": "quantized programs: the decorated function that transformations take in their place",
    "__relay_hook__": "the hook for uncaught exceptions: True, so that it is installed once",
    "__relay_python__": "modules whose plain functions programs do not read: True",
    "__relay_record__": "classes of a file that is read without being run: the fields of a dataclass or named tuple",
    "__relay_returned__": "functions that programs returned to Python: True",
    "__relay_source__": "stand-ins for functions of a file that is read without being run: True",
    "__relay_template__": "Python functions that are written in the language, as `vjp`: the text of their meaning",
    "__relay_result__": "classes of values of data types: what makes other Python objects of the fields of results",
    "__relay_type__": "what stands for a type in annotations: the type",
}
"""Each name, and what it says of the object that has it."""


def is_value(item: object) -> bool:
    """True if a Python object is a value of a data type."""
    return not isinstance(item, type) and getattr(type(item), "__relay_constructor__", None) is not None
