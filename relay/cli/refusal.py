"""How the commands refuse what they are asked."""


class Refusal(Exception):
    """A wrong call of a command: one line, and exit code 2."""
