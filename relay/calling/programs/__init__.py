"""The choice of the program that serves a call."""
