"""Mixed precision, and forms of expressions that lose fewer digits."""
