"""Reductions: rows, trees over threads, short rows."""
