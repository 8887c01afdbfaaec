"""The `plan` dialect: what the host does, that is buffers, views of them, and launches with shape arithmetic."""

from mlirt.dialects.folder import dialect_from_folder

Plan = dialect_from_folder("plan", __name__, __path__)
