"""What shows: the command-line tools."""
