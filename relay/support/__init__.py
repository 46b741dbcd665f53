"""Services without a subject of their own: locks, limits, signals, progress lines, logs, tracebacks."""
