"""GPUs in tests: a driver that runs kernels on the processor."""
