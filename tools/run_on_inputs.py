"""rt-opt --run on inputs: any function, at any phase, interpreted or compiled for a device from there on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function
from mlirt.errors import CompileError, UnsupportedError
from mlirt.tools.run_inputs import InputSpec, arrays_for

if TYPE_CHECKING:
    from argparse import Namespace

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def run_on_inputs(module: ModuleOp, ctx: RtContext, arguments: Namespace, text: str = "") -> dict[str, Array]:
    """The outputs of the function that the flags name, by name; `text` is that of the module where it is a dump.

    Raises `InvalidInputError` for inputs that do not fit.
    """
    from mlirt.builder.ir_input import name_entry
    from mlirt.passes.starting_phase import check_target, starting_phase

    copy = module.clone()
    name_entry(copy, arguments.function)
    feeds = arrays_for(entry_function(copy), list(map(InputSpec.parse, arguments.input_arrays)), arguments.shapes)
    first = arguments.first if arguments.first and not arguments.to else starting_phase(copy, text)
    if arguments.run == "reference":
        from mlirt.builder.reference_engine import ReferenceEngine

        try:
            return ReferenceEngine(copy, ctx).run(feeds)
        except CompileError as error:
            if first != "memory":
                raise
            raise UnsupportedError(f"kernels for vectors of a CPU are not interpreted ({error}): --run=cpu") from error
    from mlirt.builder.build import BuildOptions, build

    check_target(text, first, arguments.run)
    options = BuildOptions(arguments.precision, first=first, temporary=True)
    return dict(build(copy, ctx, arguments.run, options).run(feeds))


def output_summary(outputs: Mapping[str, Array]) -> list[str]:
    """A line for each output: its type and shape, and its least, mean and largest number."""
    import numpy as np

    lines: list[str] = []
    for name, array in outputs.items():
        wide = array.astype(np.float64) if array.size else np.zeros(1)
        shape = "x".join(map(str, array.shape)) or "scalar"
        numbers = f"min {wide.min():g}, mean {wide.mean():g}, max {wide.max():g}"
        lines.append(f"{name}: {array.dtype} {shape}, {numbers}")
    return lines
