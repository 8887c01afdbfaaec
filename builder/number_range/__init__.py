"""Which layers of a network leave the range of half precision."""
