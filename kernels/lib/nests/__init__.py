"""Loop nests in the kernel language: sums over affine boxes, the taps of windows, direct convolutions."""
