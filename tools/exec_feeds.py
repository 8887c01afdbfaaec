"""The inputs of rt-exec's runs: from files, else random, in the shapes that the flags, the files or the plan tell."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.errors import InvalidInputError
from mlirt.tools.flag_values import Shape
from mlirt.tools.rt_exec_profiles import profiles_of
from mlirt.tools.trtexec_log import log

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.engine_interface import EngineLike, TensorDescription

    Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def feeds_of(engine: EngineLike, arguments: Namespace) -> dict[str, Array]:
    """The inputs of a run: from files, else random."""
    from mlirt.tools.tensor_files import read_inputs

    return read_inputs(engine.inputs, _run_shapes(engine, arguments), arguments.loadInputs)


def _run_shapes(engine: EngineLike, arguments: Namespace) -> dict[str, Shape]:
    """The shape of each input: as given, as in its file, the profile's usual one, or 1 for what is left open."""
    from mlirt.tools.tensor_files import known_shapes

    names = [tensor.name for tensor in engine.inputs]
    for name in arguments.shapes:
        if name not in names:
            raise InvalidInputError(f"--shapes: the engine has no input {name!r}; its inputs are {names}")
    usual = _usual_shapes(engine) | {name: shapes[1] for name, shapes in profiles_of(arguments).items()}
    known = {**usual, **known_shapes(arguments.loadInputs), **arguments.shapes}
    return {tensor.name: known.get(tensor.name) or _default_shape(tensor) for tensor in engine.inputs}


def _usual_shapes(engine: EngineLike) -> dict[str, Shape]:
    """Those of the first profile that the plan keeps."""
    from mlirt.runtime.engine import Engine

    profiles = engine.profiles if isinstance(engine, Engine) else ()
    return {name: found.optimum for name, found in profiles[0].items()} if profiles else {}


def _default_shape(tensor: TensorDescription) -> Shape:
    if all(isinstance(dim, int) for dim in tensor.shape):
        return tuple(int(dim) for dim in tensor.shape)
    if not all(isinstance(dim, int) or dim.isidentifier() for dim in tensor.shape):
        raise InvalidInputError(f"input {tensor.name!r} has shape {tensor.shape}: give the shape to run with --shapes")
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in tensor.shape)
    chosen = "x".join(map(str, shape))
    log("W", f"Dynamic dimensions required for input: {tensor.name}, but no shapes were provided.")
    log("W", f"Automatically overriding shape to: {chosen}")
    return shape
