"""Which tensors are blocked, and how each family of fused ops works on them."""
