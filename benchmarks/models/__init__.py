"""Larger workloads, for the frameworks that have what they need: a file for each, with `FUNCTIONS` by name."""
