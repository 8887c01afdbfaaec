"""Which bytes of its buffers a kernel can touch, as formulas of its arguments, read off the kernel's IR."""
