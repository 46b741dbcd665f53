"""Attributes, items and elements of values: what stands behind a dot or in brackets, and what a loop goes through."""
