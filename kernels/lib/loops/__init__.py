"""Loop nests that write a family plainly: over affine accesses, along rows, over the taps of windows."""
