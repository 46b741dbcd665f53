"""Structures, lists and data types."""
