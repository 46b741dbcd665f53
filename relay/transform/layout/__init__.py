"""Layouts of convolutional networks."""
