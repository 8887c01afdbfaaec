"""Engines made from PyTorch: modules, exported programs, and the back end of torch.compile."""
