"""The kernels that look at tensors where a GPU has them: the largest magnitude, counts of magnitudes, channels.

The builder compiles this text; nothing imports it. No result depends on the order in which threads run.
"""

from importlib import import_module
from typing import Any

cuda: Any = import_module("numba.cuda")
types: Any = import_module("numba.core.types")
float32, float64, int32, int64 = types.float32, types.float64, types.int32, types.int64

THREADS = 256
BINS = 2048


def largest(tensor: Any, size: Any, tops: Any) -> None:
    """The largest magnitude that each block sees; NaN where it sees one."""
    shared = cuda.shared.array(256, float32)
    thread, top = cuda.threadIdx.x, float32(0.0)
    place, step = int64(cuda.blockIdx.x) * THREADS + thread, int64(cuda.gridDim.x) * THREADS
    while place < size:
        magnitude = abs(tensor[place])
        if magnitude > top or magnitude != magnitude:
            top = magnitude
        place += step
    shared[thread] = top
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, THREADS):
            if shared[other] > top or shared[other] != shared[other]:
                top = shared[other]
        tops[cuda.blockIdx.x] = top


def count(tensor: Any, size: Any, factor: Any, rows: Any) -> None:
    """How many elements of each block's part have magnitude * factor in each bin; in a last place how many are 0."""
    shared = cuda.shared.array(2049, int32)
    thread, zeros = cuda.threadIdx.x, int32(0)
    for bin_ in range(thread, BINS + 1, THREADS):
        shared[bin_] = 0
    cuda.syncthreads()
    place, step = int64(cuda.blockIdx.x) * THREADS + thread, int64(cuda.gridDim.x) * THREADS
    while place < size:
        scaled = abs(tensor[place]) * factor
        if tensor[place] == float32(0):
            zeros += 1
        elif scaled >= float32(BINS - 1):
            cuda.atomic.add(shared, BINS - 1, 1)
        else:
            cuda.atomic.add(shared, int32(scaled), 1)
        place += step
    cuda.atomic.add(shared, 0, zeros)
    cuda.atomic.add(shared, BINS, zeros)
    cuda.syncthreads()
    for bin_ in range(thread, BINS + 1, THREADS):
        rows[int64(cuda.blockIdx.x) * (BINS + 1) + bin_] = shared[bin_]


def sum_rows(rows: Any, count_of_rows: Any, sums: Any) -> None:
    """The sum of each column; a thread has one."""
    column = cuda.blockIdx.x * THREADS + cuda.threadIdx.x
    if column <= BINS:
        total = int64(0)
        for row in range(count_of_rows):
            total += rows[row * (BINS + 1) + column]
        sums[column] = total


def reduce_channels(tensor: Any, size: Any, channels: Any, inner: Any, rows: Any) -> None:
    """The least number, the greatest and the sum of each channel of a tensor [.., channels, inner]; a block has one."""
    least = cuda.shared.array(256, float32)
    greatest = cuda.shared.array(256, float32)
    total = cuda.shared.array(256, float64)
    thread, channel = cuda.threadIdx.x, int64(cuda.blockIdx.x)
    low, high, sum_ = tensor[channel * inner], tensor[channel * inner], float64(0.0)
    place = int64(thread)
    while place < size // channels:
        number = tensor[(place // inner * channels + channel) * inner + place % inner]
        low, high = min(low, number), max(high, number)
        sum_ += float64(number)
        place += THREADS
    least[thread], greatest[thread], total[thread] = low, high, sum_
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, THREADS):
            low, high = min(low, least[other]), max(high, greatest[other])
            sum_ += total[other]
        rows[3 * channel], rows[3 * channel + 1], rows[3 * channel + 2] = float64(low), float64(high), sum_
