"""The laws of canonicalize: one file per family of layers, one rule per law."""
