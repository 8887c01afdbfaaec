"""Rules for scatters: updates of whole rows are told apart from those of single elements."""

from __future__ import annotations

from mlirt.dialects.indexing import ScatterMode
from mlirt.dialects.integer_list import integers
from mlirt.dialects.slicing import SliceMode
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.scatter import ScatterModeAttr, ScatterOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.rules import Match, Outcome, op, rule


@rule(op(ScatterOp, indices=op(SliceOp).shared().named("repeated"), mode="element", axis=0).named("scatter"))
def scatter_whole_rows(m: Match, scatter: ScatterOp, repeated: SliceOp) -> Outcome:
    """Updates of single elements by indices that are repeated along whole rows: one index for each row is read."""
    rows = dims(repeated.output.type)[0]
    if not _repeats_rows(repeated) or dims(scatter.data.type)[1:] != dims(scatter.updates.type)[1:]:
        return None
    indices = m.make(ShuffleOp, repeated.input, None, reshape_dims=[rows, 1], zero_is_placeholder=False).output
    return m.make(
        ScatterOp,
        scatter.data,
        indices,
        scatter.updates,
        mode=ScatterModeAttr(ScatterMode.ND),
        reduction=scatter.reduction,
        unique_indices=scatter.unique_indices,
    )


def _repeats_rows(repeated: SliceOp) -> bool:
    """Whether a slice repeats one element for each index of the first axis, and nothing else."""
    if repeated.start is None or repeated.stride is None or repeated.mode.data is not SliceMode.STRICT_BOUNDS:
        return False
    source, made = dims(repeated.input.type), dims(repeated.output.type)
    is_plain = all(start == 0 for start in repeated.start.dims()) and integers(repeated.stride)[:1] == (1,)
    return is_plain and source[0] == made[0] and all(length == 1 for length in source[1:])


RULES = (scatter_whole_rows,)
