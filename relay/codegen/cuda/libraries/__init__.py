"""NVIDIA's libraries: large products by cuBLASLt, large convolutions by cuDNN, where they are installed."""
