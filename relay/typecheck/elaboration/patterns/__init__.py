"""`match`: patterns and their decision trees."""
