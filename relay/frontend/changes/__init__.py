"""Changes of what a function is given, as Python's functions make them: which there are, and how callers see them."""
