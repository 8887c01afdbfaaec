"""A run on the same memory as the one before, on the CPU: nothing is looked at again that cannot have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlirt.runtime.api.caller_memory import read
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.data_types import numpy_dtype

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.engine import Engine


@dataclass(frozen=True)
class RepeatedRun:
    """The arrays that lie at the addresses of a run, and who made it."""

    engine: Engine
    context: ExecutionContext
    addresses: Mapping[str, int]
    feeds: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]

    def again(self, engine: Engine, context: ExecutionContext | None, addresses: Mapping[str, int]) -> bool:
        """Run where engine, context and addresses are the same; False, with nothing done, where that is not all."""
        if context is not self.context or engine is not self.engine or addresses != self.addresses:
            return False
        return self.context.run_short(self.feeds, self.outputs) is not None


def repeated_run(
    engine: ICudaEngine,
    context: ExecutionContext,
    addresses: Mapping[str, int],
    feeds: Mapping[str, np.ndarray],
    stored_shape: Callable[[str], tuple[int, ...]],
) -> RepeatedRun | None:
    """The run that was made on these inputs; None on a GPU, and where a run tells or finds shapes of outputs."""
    if engine.engine.target == "cuda" or any(one.shape_output for one in engine.tensors.values()):
        return None
    outputs: dict[str, np.ndarray] = {}
    for tensor in engine.manifest.outputs:
        shape = stored_shape(tensor.name)
        if -1 in shape:
            return None
        outputs[tensor.name] = read("cpu", addresses.get(tensor.name, 0), numpy_dtype(tensor.dtype), shape, 0)
    return RepeatedRun(engine.engine, context, dict(addresses), feeds, outputs)
