"""Transformations of loops, and recursion that becomes loops."""
