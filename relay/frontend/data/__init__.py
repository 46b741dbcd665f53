"""Classes as data types, and their values in Python."""
