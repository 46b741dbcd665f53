"""Kinds of values: tensors, structures, data types, functions, sizes, Python objects."""
