"""Usage errors of the commands."""


class Refusal(Exception):
    """A wrong call of a command: one line, and exit code 2."""
