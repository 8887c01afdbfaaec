"""The number of a run: what tells one run of a network from the next where their inputs do not."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, i64
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, result_def, traits_def
from xdsl.traits import MemoryReadEffect

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_NUMBER: ContextVar[int] = ContextVar("run number", default=0)


@contextmanager
def run_number(number: int) -> Generator[None]:
    """Let what is interpreted inside be the run of this number."""
    token = _NUMBER.set(number)
    try:
        yield
    finally:
        _NUMBER.reset(token)


def this_run() -> Array:
    """The number of the run, as a network reads it."""
    import numpy as np

    return np.asarray(_NUMBER.get(), np.int64)


@irdl_op_definition
class RunNumberOp(TensorOp):
    """How many runs an execution context has made before this one (tensorrt-features.md#1.11b).

    Contexts count for themselves, so that a new one begins with the numbers of every other.
    `convert-run-number-to-input` makes it an input, which the runtime feeds.

    Example: `%r = trt.run_number : tensor<i64>`
    """

    name = "trt.run_number"

    output = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($output)"

    def check(self) -> None:
        """There is nothing that could be wrong."""

    def infer(self) -> Sequence[Tensor]:
        return [tensor(i64, [])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return [this_run()]
