"""Operator fusion: producer-consumer, multi-output, row by row, and outlining of the groups."""
