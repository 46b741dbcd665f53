"""Derivatives of and in programs."""
