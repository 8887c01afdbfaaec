"""What importers share: the network while it is read, and what a convolution, slice or reduction becomes in it."""
