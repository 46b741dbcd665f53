"""Functions of Python and NumPy: what is decided at compile time. `overloads.py` has the table of all of them."""
