"""The accelerator VTA in tests: random streams, and two other simulators."""
