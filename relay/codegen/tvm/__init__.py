"""TVM's own interfaces, used here and nowhere else."""
