"""The text notation of programs: printers, parsers, and displays."""
