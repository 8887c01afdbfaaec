"""rt-exec --checkOnly: whether a model can be read, and a line for each operator and reason where it cannot."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from mlirt.errors import InvalidInputError, UnsupportedError, UnsupportedOperatorsError
from mlirt.tools.trtexec_log import log, log_all


def check_model(arguments: Namespace) -> None:
    """Read the model and build nothing; raises `UnsupportedError` after the lines where it cannot be taken."""
    from mlirt.dialects.context import RtContext
    from mlirt.frontend.onnx.importer import import_model

    if not arguments.onnx or not Path(arguments.onnx).is_file():
        raise InvalidInputError("--checkOnly needs a model: --onnx=FILE")
    try:
        import_model(Path(arguments.onnx), RtContext())
    except UnsupportedOperatorsError as error:
        log("E", "operator | nodes | why | way out | where")
        log_all("E", [str(refusal) for refusal in error.refusals])
        total = sum(refusal.count for refusal in error.refusals)
        raise UnsupportedError(f"{total} nodes of {arguments.onnx} cannot be taken") from error
    log("I", f"{arguments.onnx} can be taken; nothing was built since --checkOnly is added.")
