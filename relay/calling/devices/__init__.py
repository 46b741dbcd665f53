"""Arrays on GPUs."""
