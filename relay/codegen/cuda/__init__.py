"""CUDA: kernels of a program for GPUs of NVIDIA, as CUDA C and as machine code."""
