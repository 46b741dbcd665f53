"""NVIDIA's libraries: large products by cuBLASLt, where it is installed."""
