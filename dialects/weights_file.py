"""Weights beside IR text: `model.mlir` names them, `model.safetensors` holds their bytes."""

from __future__ import annotations

from pathlib import Path

from xdsl.context import Context
from xdsl.ir import Attribute, Operation

from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.weights import WeightsAttr
from mlirt.errors import InvalidModelError


def weights_in(module: Operation) -> dict[str, WeightsAttr]:
    """The weights that the ops of a module name, by key."""
    return {attr.key.data: attr for op in module.walk() for attr in _attributes(op) if isinstance(attr, WeightsAttr)}


def _attributes(op: Operation) -> list[Attribute]:
    return [*op.properties.values(), *op.attributes.values()]


def weight_bytes(module: Operation, ctx: Context) -> int:
    """How many bytes the weights that a module names take; raises `InvalidModelError` where some are not loaded."""
    store = weights_of(ctx)
    return sum(store.get(attr).nbytes for attr in weights_in(module).values())


def write_weights(module: Operation, ctx: Context, path: Path) -> bool:
    """Write the weights that a module names; says whether there were any."""
    wanted = weights_in(module)
    if not wanted:
        return False
    import numpy as np
    from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

    store = weights_of(ctx)
    partial = path.with_name(path.name + ".partial")
    # The library writes the buffer as it lies, whatever the strides say.
    arrays = {key: np.asarray(store.get(attr), order="C") for key, attr in wanted.items()}
    save_file(arrays, partial)
    partial.replace(path)
    return True


def read_weights(ctx: RtContext, path: Path) -> None:
    """Put the arrays of a weights file into the context's store."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InvalidModelError(f"{path}: expected a safetensors file with the weights of the IR: {error}") from error
    for key, array in arrays.items():
        ctx.weights.add(key, array)
