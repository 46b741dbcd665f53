"""Effects of functions: which they have, how calls pass them on, how they are written."""
