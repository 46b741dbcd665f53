"""Public transformations: derivatives, the gradient check, quantization, tuning, the static check."""
