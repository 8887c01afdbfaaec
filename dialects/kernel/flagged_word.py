"""Flag-in-data exchange between the blocks of a launch, as in NCCL's LL protocol: each word holds a number and a flag.

A word is written and read whole: who finds the flag has the number too, so that no barrier and no fence is needed. The
attribute `cooperative` of a kernel says that all of its blocks run at the same time, as those that wait need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import Float32Type, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Attribute, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.tensor_types import byte_width, is_float

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

MAX_LOAD_BYTES = 16  # bytes that are read at once


def word_type(element: Attribute) -> IntegerType:
    """The words that carry numbers of a type: half of each is the number, half the flag."""
    return IntegerType(64 if isinstance(element, Float32Type) else 32)


def words_at_once(element: Attribute) -> int:
    """How many neighbouring words are read at once."""
    return MAX_LOAD_BYTES // byte_width(word_type(element))


_IS_SHORT = Rule(
    "it moves floating-point numbers of 16 or 32 bits",
    lambda x: is_float(x.T.type) and byte_width(x.T.type) in (2, 4),
    "moves floating-point numbers of 16 or 32 bits, not {T.type}",
)
_FITS = Rule(
    "words are integers of twice the bits",
    lambda x: x.words.get_element_type() == word_type(x.T.type),
    lambda x: f"the words for {x.T.type} are {word_type(x.T.type)}, not {x.words.get_element_type()}",
)


def _half(words: Any) -> int:
    """The bits of half a word."""
    return 4 * words.buffer.data.dtype.itemsize


@instruction
class SendFlaggedOp(Instruction):
    """Write a number and a flag, of which the lower half of a word's bits count.

    Example: `kernel.send_flagged %value flag %t, %words[%i] : f16, memref<?xi32>`
    """

    name = "kernel.send_flagged"

    value: SSAValue = fields.scalar("T")
    flag: SSAValue = fields.index()
    words: SSAValue = fields.memref()
    index: SSAValue = fields.index()

    syntax = "$value `flag` $flag `,` $words `[` $index `]`"
    effects = SYNCHRONIZES
    rules = (_IS_SHORT, _FITS)
    cuda = Text("send_flagged", '"{T}"', hint="send")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        bits = _half(x.words)
        values = np.ascontiguousarray(x.value).view(f"uint{bits}").astype(np.uint64)
        flags = x.flag.astype(np.uint64) & np.uint64((1 << bits) - 1)
        words = (flags << np.uint64(bits) | values).astype(f"uint{2 * bits}")
        x.words.write(x.index, words.view(x.words.buffer.data.dtype))


@instruction
class ReceiveFlaggedOp(Instruction):
    """Wait until `count` neighbouring words from each index on have a flag; gives their numbers, index by index.

    The words of an index fill 16 bytes at most and are aligned like that.

    Example: `%v = kernel.receive_flagged %words[%i, %j] flag %t {count = 4 : i64} : memref<?xi32> -> vector<8xf16>`
    """

    name = "kernel.receive_flagged"

    words: SSAValue = fields.memref()
    indices: Sequence[SSAValue] = fields.indices()
    flag: SSAValue = fields.index()
    count: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(VectorType, "T", "n")

    syntax = "$words `[` $indices `]` `flag` $flag"
    effects = SYNCHRONIZES
    rules = (
        _IS_SHORT,
        _FITS,
        Rule(
            "the words of an index are read at once",
            lambda x: 0 < x.count <= words_at_once(x.T.type),
            "{count} words are not read at once",
        ),
        Rule(
            "there are `count` numbers per index",
            lambda x: x.n == x.count * len(x.indices),
            "gives {count} numbers per index",
        ),
    )
    cuda = Text(
        "receive_flagged",
        lambda x: f'"{x.T}", {x.count}, {len(x.indices)}',
        hint="receive",
        operands=("words", "flag", "indices"),
    )

    def __init__(
        self, words: SSAValue, indices: Sequence[SSAValue], flag: SSAValue, count: int, element: Attribute
    ) -> None:
        self.fill(words, indices, flag, count, result=VectorType(element, [count * len(indices)]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return np.concatenate([_received(x, site, first) for first in x.indices], axis=1)


def _received(x: Any, site: Site, first: Any) -> Any:
    """The numbers of the words from one index on; all blocks run in step, so what is awaited has been sent."""
    import numpy as np

    from mlirt.dialects.kernel.interpreter_memory import NeverSentError, OutOfBoundsError
    from mlirt.dialects.scalar_semantics import scalar_dtype

    bits = _half(x.words)
    if (first % x.count).any():
        raise OutOfBoundsError(f"{site.where}: words are not aligned to {x.count} of them")
    words = x.words.read(first[:, None] + np.arange(int(x.count))).view(f"uint{2 * bits}").astype(np.uint64)
    flags = x.flag.astype(np.uint64) & np.uint64((1 << bits) - 1)
    late = words >> np.uint64(bits) != flags[:, None]
    if late.any():
        lane = int(late.any(axis=1).argmax())
        word = f"%{x.words.buffer.name}[{first[lane] + int(late[lane].argmax())}]"
        raise NeverSentError(f"{site.where}: nobody has sent {word} with the flag {flags[lane]}")
    return words.astype(f"uint{bits}").view(scalar_dtype(x.T.type))
