"""Automatic differentiation of core programs, by transformation; `reverse.py` opens with the equations."""
