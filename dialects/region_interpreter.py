"""The meaning of branches, loops and the numbers between them, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from mlirt.dialects.regions import ControlOp, is_bridge
from mlirt.errors import UnsupportedError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# Runs a block with its arguments among the values that are known around it.
RunBlock = Callable[[Block, "Sequence[Array]"], "list[Array]"]

# A loop that is longer is taken for one that never ends.
MAX_ITERATIONS = 1 << 24


def is_structural(op: Operation) -> bool:
    """Whether this module knows what an op means."""
    return isinstance(op, ControlOp) or is_bridge(op)


def execute(op: Operation, operands: Sequence[Array], run: RunBlock) -> list[Array]:
    """The results of a branch, a loop or a conversion between numbers and tensors."""
    if isinstance(op, scf.IfOp):
        return _branch(op, operands, run)
    if isinstance(op, scf.ForOp):
        first, limit, step = (int(number) for number in operands[:3])
        return _counted(op, range(first, limit, step), list(operands[3:]), run)
    if isinstance(op, scf.WhileOp):
        return _conditional(op, list(operands), run)
    return [_converted(op, operands)]


def _branch(op: scf.IfOp, operands: Sequence[Array], run: RunBlock) -> list[Array]:
    region = op.true_region if bool(operands[0]) else op.false_region
    return run(region.block, []) if region.blocks else []


def _counted(op: scf.ForOp, iterations: range, carried: list[Array], run: RunBlock) -> list[Array]:
    import numpy as np

    for iteration in iterations:
        carried = run(op.body.block, [np.asarray(iteration, np.int64), *carried])
    return carried


def _conditional(op: scf.WhileOp, carried: list[Array], run: RunBlock) -> list[Array]:
    for _ in range(MAX_ITERATIONS):
        holds, *passed = run(op.before_region.block, carried)
        if not bool(holds):
            return passed
        carried = run(op.after_region.block, passed)
    raise UnsupportedError(f"has made {MAX_ITERATIONS} iterations and does not end")


def _converted(op: Operation, operands: Sequence[Array]) -> Array:
    import numpy as np

    if isinstance(op, arith.ConstantOp):
        assert isinstance(op.value, IntegerAttr)
        return np.asarray(op.value.value.data)
    if isinstance(op, tensor.FromElementsOp):
        return np.asarray(operands[0], np.int64)
    return np.asarray(operands[0])


def restored(symbols: dict[str, int], before: Mapping[str, int]) -> None:
    """Forget the sizes that were learnt inside of a region: each iteration may have others."""
    symbols.clear()
    symbols.update(before)
