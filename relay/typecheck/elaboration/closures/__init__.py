"""Functions in results of programs, and functions that outlive their scope."""
