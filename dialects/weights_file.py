"""Weights beside IR text: `model.mlir` names them, `model.safetensors` holds their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xdsl.context import Context
from xdsl.ir import Attribute, Operation

from mlirt.atomic_file import replacing
from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.weights import WeightsAttr
from mlirt.errors import InvalidInputError, InvalidModelError

# The weights of all IR files of a folder that have none of their own.
FOLDER_WEIGHTS = "weights.safetensors"


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
    if wanted:
        save_weights(wanted, ctx, path)
    return bool(wanted)


def save_weights(wanted: Mapping[str, WeightsAttr], ctx: Context, path: Path) -> None:
    """Write weights to a file that appears only when it is complete; raises `InvalidInputError` where it cannot."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

    store = weights_of(ctx)
    # The library writes the buffer as it lies, whatever the strides say.
    arrays = {key: np.asarray(store.get(attr), order="C") for key, attr in wanted.items()}
    try:
        with replacing(path) as partial:
            save_file(arrays, partial)
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"cannot write the weights to {path}: {error}") from error


def weights_beside(path: Path) -> Path | None:
    """The weights of an IR file: a file of its name, else that of its folder; `None` where there is neither."""
    found = [file for file in (path.with_suffix(".safetensors"), path.with_name(FOLDER_WEIGHTS)) if file.is_file()]
    return found[0] if found else None


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
