"""The hidden state of one sequence in shared memory, in whole steps, for products with weights of integers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, LoadFragmentOp
from mlirt.dialects.kernel.simt import WARP, ShuffleOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape
from mlirt.kernels.rnn.hidden_steps import HiddenSteps


def put_in_steps(
    k: KernelBuilder, shape: PersistentShape, hidden: SSAValue, steps: SSAValue, size: int, thread: SSAValue
) -> SSAValue:
    """Fill `steps` with the `size` numbers of `hidden` as float32 integers; returns the size of a step.

    Every warp looks for the least and the largest number by itself. What lies behind the units is zero and stays so.
    """
    lane = k.rem(thread, WARP)
    count = -(-shape.units // WARP)
    seen = k.value(LoadFragmentOp(hidden, lane, [WARP * number for number in range(count)]))
    numbers = [k.value(FragmentElementOp(seen, number)) for number in range(count)]
    found = HiddenSteps.between(k, _extreme(k, numbers, "min"), _extreme(k, numbers, "max"))

    def put(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        at = k.add(k.mul(number, shape.threads), thread)
        value = k.value(LoadFragmentOp(hidden, at, [0]))
        k.insert(StoreOp(found.of_number(k.value(FragmentElementOp(value, 0))), steps, [at], [1]))
        return []

    k.loop(size // shape.threads, [], put)
    return found.size


def _extreme(k: KernelBuilder, numbers: Sequence[SSAValue], which: str) -> SSAValue:
    """The least or the largest of the numbers of all threads of a warp, and zero."""
    s = k.scalars(f32)
    join = s.min if which == "min" else s.max
    total = k.constant(0, f32)
    for number in numbers:
        total = join(total, number)
    for mask in (16, 8, 4, 2, 1):
        total = join(total, k.value(ShuffleOp(total, mask)))
    return total
