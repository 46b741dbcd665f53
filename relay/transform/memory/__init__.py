"""References, stacks and tapes become values and tensors."""
