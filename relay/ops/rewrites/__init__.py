"""Tables of equations between operators."""
