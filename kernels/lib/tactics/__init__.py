"""What a tactic is, how it is found, and what it works with."""
