"""A failure leaves a test: the IR before the failing pass, the command that fails on it, and the error."""

from __future__ import annotations

import tempfile
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.atomic_file import write_atomically
from mlirt.dialects.pass_plugins import active
from mlirt.dialects.weights_file import weight_bytes, write_weights
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidModelError

# Few failures depend on the values of weights; a disk full of copies would be the greater harm.
_MAX_WEIGHT_BYTES = 16 << 20


def write_reproducer(
    module: ModuleOp, ctx: Context, pass_: ModulePass, message: str, folder: Path | None
) -> Path | None:
    """Write `<pass>.mlir`, and its weights beside it where they are small; None where the disk does not let us."""
    try:
        target = Path(tempfile.mkdtemp(prefix="mlirt-reproducer-")) if folder is None else folder
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"{pass_.name}.mlir"
        brought = "".join(f" --load-pass-plugin={plugin.path.resolve()}" for plugin in active())
        head = [f"// RUN: rt-opt %s{brought} -p '{pass_.pipeline_pass_spec()}'", f"// error: {message}"]
        if _weights_are_small(module, ctx):
            write_weights(module, ctx, path.with_suffix(".safetensors"))
        else:
            head.append("// weights: left out, give those of the network with --weights where the pass reads them")
        write_atomically(path, ["\n".join([*head, "", module_text(module)]).encode()])
    except OSError:
        return None
    return path


def _weights_are_small(module: ModuleOp, ctx: Context) -> bool:
    try:
        return weight_bytes(module, ctx) <= _MAX_WEIGHT_BYTES
    except InvalidModelError:
        return False  # some were never loaded, and the pass failed without them
