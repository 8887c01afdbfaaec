"""PTX in a plan, for GPUs that it has no machine code for: compressed text, which the driver compiles at loading.

The driver keeps what it has made in its own cache (CUDA_CACHE_PATH), so that the next process compiles nothing.
"""

import zlib

from mlirt.errors import PlanError

_MAX_BYTES = 1 << 26


def ptx_text(section: bytes, name: str) -> bytes:
    """The text as the driver takes it, with a zero behind it; raises `PlanError` where the section `name` is none."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(section, _MAX_BYTES)
    except zlib.error as error:
        raise PlanError(f"damaged object code {name!r}: not compressed PTX") from error
    if not unpacker.eof or b".version" not in text or b"\0" in text:
        raise PlanError(f"damaged object code {name!r}: not compressed PTX")
    return text + b"\0"
