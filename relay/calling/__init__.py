"""What a call does: arguments, the choice of a program, the fast path of repeated calls, results."""
