"""Reductions, running sums, sorting."""
