"""Products of matrices: their order, joining them, folding scales."""
