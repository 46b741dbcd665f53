"""Rules for kernels of GPUs: which loops a stage gets, and how they are shared among threads."""
