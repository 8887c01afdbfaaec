"""The hidden state of one sequence in shared memory, in whole steps, for products with weights of integers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.combine_words import combiner_of
from mlirt.kernels.lib.language.simt_words import Access, element_at, load_fragment
from mlirt.kernels.lib.language.words import constant, static_range
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape
from mlirt.kernels.rnn.hidden_steps import steps_between


@kernel
def put_in_steps(shape: PersistentShape, hidden: Value, steps: Value, size: int, thread: Value) -> Value:
    """Fill `steps` with the `size` numbers of `hidden` as float32 integers; returns the size of a step.

    Every warp looks for the least and the largest number by itself. What lies behind the units is zero and stays so.
    """
    lane, count = thread % WARP, -(-shape.units // WARP)
    seen = load_fragment(hidden, lane, Access([WARP * number for number in static_range(count)]))
    numbers = [element_at(seen, number) for number in static_range(count)]
    found = steps_between(_extreme(ReduceKind.MIN, numbers), _extreme(ReduceKind.MAX, numbers))
    for number in range(size // shape.threads):
        at = number * shape.threads + thread
        steps[at] = found.of_number(element_at(load_fragment(hidden, at, Access([0])), 0))
    return found.size


def _extreme(kind: ReduceKind, numbers: Sequence[Value]) -> Value:
    """The least or the largest of the numbers of all threads of a warp, and zero."""
    combiner = combiner_of(kind, f32)
    return combiner.over_lanes(combiner.of(constant(0.0, f32), *numbers), (16, 8, 4, 2, 1))


__all__ = ["put_in_steps"]
