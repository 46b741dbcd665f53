"""Whether a module is well formed."""
