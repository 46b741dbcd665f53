"""Python files that are read without running them."""
