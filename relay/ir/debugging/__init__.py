"""What a program says to those who debug it."""
