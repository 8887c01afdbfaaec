"""Kernels: how each family of fused ops is computed on a machine.

- `<family>/` (`matmul/`, `window/`, ..) has the tactics for some classes of fused ops, those of its name and those that
  name it as their `FAMILY`: `copy/` moves elements, `rows/` combines those of rows. `generic.py` fits every shape, type
  and layout on both targets, `cpu/` and `cuda/` have the faster ones for one target, and beside them lies what only
  they share. Families do not import each other.
- `lib/` is what kernels are written with. `language/` reads kernels that are Python functions, `builder/` writes them
  op by op, `tactics/` finds the tactics and tells them about tensors and machine; `loops/`, `copying.py`, `tile.py` and
  `value_ranges/` are for both targets, `cpu/` and `cuda/` for one.
"""
