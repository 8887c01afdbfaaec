"""Branches and loops over tensors become branches and loops over launches."""
