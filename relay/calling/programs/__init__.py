"""Which program serves a call."""
