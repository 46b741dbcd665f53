"""Effects with handlers: random numbers with implicit keys (`rng.py`), and parameters (`params.py`)."""
