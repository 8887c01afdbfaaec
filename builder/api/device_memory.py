"""How much memory the device of a build has: what TensorRT's workspace may be where nobody says less
(tensorrt-features.md#3.6).
"""

from __future__ import annotations

import os

from mlirt.errors import MlirtError


def memory_of_the_device(target: str) -> int:
    """Bytes of the GPU's memory, or of the host's for an engine on the CPU."""
    if target != "cpu":
        from mlirt.runtime.cuda_driver import open_driver

        try:
            return open_driver().total_memory()
        except MlirtError:
            pass  # there is no GPU: the target auto means the CPU
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
