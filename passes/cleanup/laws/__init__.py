"""The laws of canonicalize: one file per family of layers, one function per law, each with the value that it gives."""
