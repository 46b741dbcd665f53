"""Loops, joins of branches, and results of recursive functions."""
