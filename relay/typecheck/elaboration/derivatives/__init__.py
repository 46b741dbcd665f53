"""`relay.grad` and the other derivatives inside of programs, and types of tangents."""
