"""A stage on a GPU: what it takes of other stages and gives to them goes from GPU to GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import prod

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.cuda_driver import CudaDriver, open_driver
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.device_run import run_at_addresses
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.manifest import Tensor
from mlirt.serve.pipeline.nccl import Communicator
from mlirt.serve.pipeline.stage import Job, Passed, Wiring, given

Shape = tuple[int, ...]


class _Buffer:
    """Memory of the device that grows as it is asked to, at least to twice what it was."""

    def __init__(self, driver: CudaDriver) -> None:
        self._driver = driver
        self._size, self._address = 0, 0

    def of(self, size: int) -> int:
        """Its address with room for so many bytes; what was in it may be gone, and no work on it may be under way."""
        if size > self._size or not self._address:
            self.close()
            self._size = max(size, 2 * self._size, 256)
            self._address = self._driver.allocate(self._size)
        return self._address

    def close(self) -> None:
        if self._address:
            self._driver.free(self._address)
        self._address = 0


class _Sequence:
    """What one sequence keeps from run to run: two buffers by turns, as a run reads the one and writes the other."""

    def __init__(self, driver: CudaDriver, names: list[str]) -> None:
        self.buffers = {name: [_Buffer(driver), _Buffer(driver)] for name in names}
        self.shapes: dict[str, Shape] = {}

    def keep(self, shapes: dict[str, Shape]) -> None:
        """What the run writes is what the next one reads."""
        self.shapes = shapes
        for pair in self.buffers.values():
            pair.reverse()

    def close(self) -> None:
        for pair in self.buffers.values():
            for buffer in pair:
                buffer.close()


class CudaStage:
    """A plan on the GPU `device`. Made, used and closed in one thread."""

    def __init__(self, plan: str | bytes, device: int, wiring: Wiring, communicator: Communicator | None) -> None:
        self._driver = open_driver(device)
        self._driver.activate()
        self.engine: Engine = load(plan)
        self._wiring, self._communicator = wiring, communicator
        self._stream = self._driver.new_stream()
        self._buffers: dict[str, _Buffer] = {}
        self._sequences: dict[Hashable, _Sequence] = {}
        self._manifest = self.engine.plan.manifest

    def run(self, job: Job, hand_on: Callable[[], None]) -> None:
        try:
            self._run(job, hand_on)
        finally:
            self._driver.synchronize(self._stream)
            if job.sequence in self._sequences and not self._sequences[job.sequence].shapes:
                self.forget(job.sequence)  # the first run failed, or there is no state

    def drain(self, job: Job) -> None:
        for name, source in self._wiring.received.items():
            if name in job.passed:
                self._receive(name, source, job)
        self._driver.synchronize(self._stream)
        if job.history.is_broken:
            self.forget(job.sequence)

    def _run(self, job: Job, hand_on: Callable[[], None]) -> None:
        received = {name: self._receive(name, source, job) for name, source in self._wiring.received.items()}
        if job.sequence not in self._sequences:
            self._sequences[job.sequence] = _Sequence(self._driver, list(self._wiring.state))
        sequence = self._sequences[job.sequence]
        shapes: list[Shape] = []
        addresses: list[int] = []
        for tensor in self._manifest.given_inputs:
            name = tensor.name
            if name in received:
                address, shape = received[name], job.passed[name].shape
            elif name in sequence.shapes and name not in job.feeds:
                shape = sequence.shapes[name]
                address = sequence.buffers[name][0].of(_bytes(tensor, shape))
            else:
                address, shape = self._upload(tensor, given(tensor, job, {}))
            addresses.append(address)
            shapes.append(shape)
        made = self.engine.context.output_shapes(tuple(shapes))
        outputs = {one.name: (one, shape) for one, shape in zip(self._manifest.outputs, made, strict=True)}
        kept = {output: name for name, output in self._wiring.state.items()}
        targets = {
            name: (sequence.buffers[kept[name]][1] if name in kept else self._buffer(name)).of(_bytes(one, shape))
            for name, (one, shape) in outputs.items()
        }
        run_at_addresses(
            self.engine.context, self._manifest, tuple(shapes), addresses, list(targets.values()), self._stream
        )
        sequence.keep({name: outputs[made][1] for name, made in self._wiring.state.items()})
        job.passed |= {name: Passed(outputs[name][1]) for name in self._wiring.sent}
        hand_on()
        for name, readers in self._wiring.sent.items():
            for reader in readers:
                self._end().send(targets[name], _bytes(*outputs[name]), reader, self._stream)
        job.results |= {name: self._download(targets[name], *outputs[name]) for name in self._wiring.results}

    def _receive(self, name: str, source: int, job: Job) -> int:
        tensor = next(one for one in self._manifest.given_inputs if one.name == name)
        size = _bytes(tensor, job.passed[name].shape)
        address = self._buffer(name).of(size)
        self._end().receive(address, size, source, self._stream)
        return address

    def _upload(self, tensor: Tensor, array: np.ndarray) -> tuple[int, Shape]:
        if array.dtype != numpy_dtype(tensor.dtype):
            raise InvalidInputError(f"input {tensor.name!r}: expected {tensor.dtype}, got {array.dtype}")
        array = np.ascontiguousarray(array)
        address = self._buffer(tensor.name).of(array.nbytes)
        # From memory that is not pinned the driver has read all when it returns.
        self._driver.copy_to_device(address, array.ctypes.data, array.nbytes, self._stream)
        return address, array.shape

    def _download(self, address: int, tensor: Tensor, shape: Shape) -> np.ndarray:
        found = np.empty(shape, numpy_dtype(tensor.dtype))
        self._driver.copy_to_host(found.ctypes.data, address, found.nbytes, self._stream)
        return found

    def _buffer(self, name: str) -> _Buffer:
        return self._buffers.setdefault(name, _Buffer(self._driver))

    def _end(self) -> Communicator:
        assert self._communicator is not None
        return self._communicator

    def forget(self, sequence: Hashable) -> None:
        found = self._sequences.pop(sequence, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        self._driver.synchronize(self._stream)
        for sequence in list(self._sequences):
            self.forget(sequence)
        for buffer in self._buffers.values():
            buffer.close()
        if self._communicator is not None:
            self._communicator.close()
        self._driver.free_stream(self._stream)


def _bytes(tensor: Tensor, shape: Shape) -> int:
    return prod(shape) * numpy_dtype(tensor.dtype).itemsize
