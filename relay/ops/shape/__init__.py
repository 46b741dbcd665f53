"""Operators that make, arrange, cut and join arrays."""
