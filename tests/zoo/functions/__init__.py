"""Functions as values."""
