"""What changes the network: small passes, one file each, ordered in `phases.py`."""
