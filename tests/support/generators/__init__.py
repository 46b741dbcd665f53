"""Generators of programs: random, well typed, mutated, hostile."""
