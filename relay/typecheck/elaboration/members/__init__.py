"""Attributes, items and elements of values: `x.a`, `x[i]`, and the elements of a loop."""
