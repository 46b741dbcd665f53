"""Lowering of the typed higher-order IR to the first-order core."""
