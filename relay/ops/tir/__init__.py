"""Numerics in TIR that operators are computed with."""
