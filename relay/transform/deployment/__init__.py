"""Passes that make a trained program smaller and simpler before it is delivered."""
