"""Errors that programs raise and catch, from Python's statements to the surface IR."""
