"""What a call costs with PyTorch's tensors beside NumPy's arrays, and which of 20 exchanges copy, by address.

    python bench/torch_exchange.py

An engine of one small layer is called by turns with arrays and with tensors, as inputs, and as inputs and outputs. The
times are of the processor that this thread has used, in microseconds: the least of `--rounds` rounds of 1,000 calls.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

import mlirt
from mlirt.builder.from_torch.module_engine import ModuleEngine
from mlirt.frontend.torch.elements import array_of, tensor_of
from mlirt.runtime.engine import Engine
from mlirt.runtime.tensor_exchange import host_array

CALLS = 1000
DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint8,
    torch.int32, torch.int64, torch.bool,
)  # fmt: skip


def main() -> int:
    """The command; the exit status is the number of exchanges that copy."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=21)
    given = flags.parse_args()
    torch.set_num_threads(1)
    copies = [name for name, is_shared in exchanges() if not is_shared]
    print(f"{len(copies)} of 20 exchanges copy {' '.join(copies)}")
    for size in (16, 1 << 16):
        for name, (plain, exchanged) in _calls(size).items():
            times = [[_seconds(call) for call in (plain, exchanged)] for _ in range(given.rounds)]
            first, second = (min(one[k] for one in times) * 1e6 for k in (0, 1))
            print(f"{size:6} elements, {name}: arrays {first:.2f}, tensors {second:.2f}: {second - first:+.2f} us")
    return len(copies)


def exchanges() -> list[tuple[str, bool]]:
    """Ten types and two layouts: whether an array lies in a tensor's memory, and a tensor in that array's."""
    found: list[tuple[str, bool]] = []
    for dtype, is_transposed in itertools.product(DTYPES, (False, True)):
        tensor = torch.ones(64, 32).to(dtype)
        tensor = tensor.T if is_transposed else tensor
        arrays = [host_array("x", tensor)] if is_transposed else [host_array("x", tensor), array_of(tensor)]
        back = [tensor_of(array).data_ptr() for array in arrays]
        addresses = {tensor.data_ptr(), *back, *(array.ctypes.data for array in arrays)}
        found.append((f"{dtype}{' transposed' if is_transposed else ''}", len(addresses) == 1))
    return found


def _calls(size: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    class Doubled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2.0

    x = torch.randn(size)
    made = mlirt.compile(Doubled(), (x,), target="cpu")
    assert isinstance(made, ModuleEngine)
    assert isinstance(made.engine, Engine)
    engine, name = made.engine, made.engine.outputs[0].name
    y = torch.empty(size)
    feeds: Mapping[str, Any] = {"x": x}
    arrays = {"x": x.numpy()}
    engine.run(feeds, {name: y})
    assert torch.equal(y, 2 * x)
    held: dict[str, np.ndarray] = {name: y.numpy()}
    return {
        "inputs": (lambda: engine.run(arrays), lambda: engine.run(feeds)),
        "inputs and outputs": (lambda: engine.run(arrays, held), lambda: engine.run(feeds, {name: y})),
        "a module's call": (lambda: engine.run(arrays), lambda: made(x)),
    }


def _seconds(call: Callable[[], Any]) -> float:
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS


if __name__ == "__main__":
    raise SystemExit(main())
