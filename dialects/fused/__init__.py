"""The `fused` dialect: what is computed together, one launch each, with the fused parts as scalar regions."""

from mlirt.dialects.folder import dialect_from_folder

Fused = dialect_from_folder("fused", __name__, __path__)
