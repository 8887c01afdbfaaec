"""The `kernel` dialect: what a block, a worker or a thread does on buffers."""

from mlirt.dialects.folder import dialect_from_folder

Kernel = dialect_from_folder("kernel", __name__, __path__)
