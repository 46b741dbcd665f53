"""Branches, loops, recursion."""
