"""Expressions and statements of the surface IR, one case for each node; calls and operators."""
