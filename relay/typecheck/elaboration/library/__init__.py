"""Functions of Python and NumPy inside of programs."""
