"""Layers of networks: what they are, how they are packed and cut into tiles, and their streams."""
