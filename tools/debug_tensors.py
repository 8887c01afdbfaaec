"""What rt-exec says of debug tensors, and the files that it writes them to."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError
from mlirt.tools.trtexec_log import log

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.engine_interface import EngineLike

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def report_debug_tensors(engine: EngineLike, arguments: Namespace, feeds: Mapping[str, Array]) -> None:
    """Compute the engine's debug tensors for these inputs: a line about each, and a file where one is asked for."""
    from mlirt.runtime.engine import Engine

    names = engine.debug_tensors if isinstance(engine, Engine) else ()
    for name in arguments.saveDebugTensors:
        if name not in names:
            known = ", ".join(names) or "none"
            raise InvalidInputError(
                f"--saveDebugTensors: {name!r} is no debug tensor; they are {known} (--markDebug marks them)"
            )
    if not isinstance(engine, Engine) or not names:
        return
    for name, array in engine.debug(feeds).items():
        log("I", f"Debug tensor {name}: {summary(array)}")
        if name in arguments.saveDebugTensors:
            _write(arguments.saveDebugTensors[name], array)


def summary(array: Array) -> str:
    """Type, shape, and the range of the elements that are numbers."""
    import numpy as np

    kind = f"{array.dtype}{list(array.shape)}"
    if not array.size:
        return f"{kind}, empty"
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    rest = f", {numbers.size - finite.size} not finite" if finite.size < numbers.size else ""
    if not finite.size:
        return kind + rest
    return f"{kind}, min {finite.min():g}, max {finite.max():g}, mean {finite.mean():g}{rest}"


def _write(path: str, array: Array) -> None:
    """`.npy` by its name, else the bytes alone."""
    import io

    import numpy as np

    if not path.endswith(".npy"):
        write_file(path, [np.ascontiguousarray(array).tobytes()])
        return
    content = io.BytesIO()
    np.save(content, array)
    write_file(path, [content.getvalue()])
