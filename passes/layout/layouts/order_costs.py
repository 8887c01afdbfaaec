"""What ops cost in one memory order or the other, in microseconds of a GPU as large as an H200."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, is_float, stored_bytes
from mlirt.dialects.typical_sizes import typical

LAUNCH = 1.5
FORBIDDEN = 1e12  # more than any network takes
MAX_ACCESS_BYTES = 16  # bytes of the widest access of a thread
_BYTES = 3.5e6  # moved in a microsecond by accesses along memory
_ACROSS = 3.0  # times as long: each thread fetches a sector for one element
_TRANSPOSED = 0.4  # of a copy: what it costs more to transpose a tile in shared memory
_SECTOR = 32  # bytes that memory moves at once
_PIXELS = 8  # of a tile that the threads of a warp write together
_KEPT = 4.0e7  # bytes of results that the second-level cache keeps until all parts of a sector have come
# Times as long as whole sectors take, on an H100: parts of sectors that rows of odd length begin in, kept by the cache
# and not, and the same behind convolutions of a few channels, whose tiles are longer.
_ODD_PARTS, _LOST_PARTS, _LOST_LONG_PARTS = 3.5, 8.0, 3.3
# The same of runs of planes, whose ends lie in sectors of two tiles, and whose pieces do if they are words.
_RUNS, _PARTED_RUNS = 0.2, 0.5
_WORD = 4  # bytes that an access has at least
# Operations by width of the elements: channels last, plain. Bytes on plain tensors have no matrix units. Warpgroups
# multiply halves and bytes where channels lie innermost; without them such elements are loaded one by one.
_RATES = {1: (6.0e8, 0.04e8), 2: (3.0e8, 0.8e8), 4: (0.15e8, 0.3e8)}
_RATES_WITH_TF32 = {**_RATES, 4: (1.5e8, 0.3e8)}
_RATES_WITHOUT_WARPGROUPS = {**_RATES, 1: (0.04e8, 0.04e8), 2: (0.35e8, 0.8e8)}
_HALF = 2
_LARGE_RESULT = 1 << 21  # elements: smaller ones have kernels that read planes and write channels innermost at once
_FILLED_ROWS = 0.5  # of what is multiplied, where rows of a few channels are filled up
_REMAINDERS = 1.2e8  # operations of a deconvolution of halves from planes to planes, whose results interleave
_PLACES = 16  # sides of its tiles, in pixels of the input
_MAX_STRIDE, _MAX_TAPS = 4, 128  # of such a deconvolution
# Of convolutions of halves by warpgroups: operations in a microsecond where channels are innermost, and the part of
# that where threads put them side by side; as the estimates of their tactics say.
_REACHED, _PLANE_BOXES = 7.5e8, 0.8
_FILLED = 0.85  # more than moving the input along memory, where threads fill boxes: 1.9e6 bytes in a microsecond
# Output channels that it multiplies at a time, and pixels of a row: at least so many, of which tiles are whole groups,
# and so many at most.
_BOX_RESULTS, _BOX_PIXELS, _GROUP_PIXELS, _MAX_BOX_PIXELS = 64, 32, 8, 256
_APART = (1, 2, 4)  # strides of a deconvolution along rows
_MIN_BOX_CHANNELS, _SHARED_RESULTS = 16, 128  # of the input, and output channels that read a box together
_DEPTH = 128  # bytes of channels that are multiplied at a time where they lie innermost
_SLOWEST = (0.3e8, 0.2e8)
_MIN_RESULTS = 8  # of a group


@dataclass(frozen=True)
class Costs:
    """Estimates for typical sizes of the dynamic dimensions.

    `has_tf32` says that matrix units may read floats, as far as there are warpgroups or tensor memory, which computes
    convolutions as warpgroups do but for deconvolutions.
    """

    values: Mapping[str, int]
    has_warpgroups: bool = True
    has_tf32: bool = False
    has_tensor_memory: bool = False

    def number(self, dim: Dim) -> int:
        return typical(dim, self.values)

    def moved(self, *types: Attribute) -> float:
        """Reading or writing tensors along memory."""
        return sum(self.number(stored_bytes(of)) for of in types) / _BYTES

    def across(self, of: Attribute) -> float:
        """Reading or writing a tensor against the order in which it lies."""
        return _ACROSS * self.moved(of)

    def transposed(self, of: Attribute) -> float:
        """What an op pays on top for an operand whose tiles it transposes in shared memory."""
        return _TRANSPOSED * self.moved(of)

    def reordered(self, op: ConvolutionOp) -> float:
        """What a convolution pays on top for results in another order than that of its input: eight pixels of a channel
        are neighbours, parts of sectors.
        """
        of = op.output.type
        apart = op.spatial()[-1][0] if op.transposed.value.data else 1  # pixels of a remainder
        if self._has_odd_rows(of):
            return apart * (_ODD_PARTS if self._is_kept(of) else _LOST_PARTS) * self.moved(of)
        return apart * _SECTOR / (_PIXELS * byte_width(element_of(of))) * self.moved(of)

    def reordered_to_planes(self, op: ConvolutionOp) -> float:
        """The same for planes behind an input whose channels are innermost.

        Warpgroups that have channels as rows write runs of planes, where these begin at whole words.
        """
        runs = self._runs_of_planes(op)
        return self.reordered(op) if runs is None else runs

    def _runs_of_planes(self, op: ConvolutionOp) -> float | None:
        """What warpgroups whose rows are channels pay on top for runs of planes; None where there is no such kernel."""
        of, kernel = op.output.type, byte_width(element_of(op.kernel.type))
        starts = self.number(product(dims(of)[2:])) * byte_width(element_of(of))
        is_plain = op.groups.value.data == 1 and not op.transposed.value.data
        if not self.has_warpgroups or not is_plain or kernel > _HALF or starts % _WORD:
            return None
        return self._runs(op) * self.moved(of)

    def _has_odd_rows(self, of: Attribute) -> bool:
        """Whether rows of halves or bytes begin anywhere in a sector."""
        width = byte_width(element_of(of))
        return width <= _HALF and self.number(dims(of)[-1]) * width % MAX_ACCESS_BYTES > 0

    def _is_kept(self, of: Attribute) -> bool:
        return self.number(stored_bytes(of)) <= _KEPT

    def reformat(self, of: Attribute) -> float:
        """A launch that copies a tensor into the other order."""
        return LAUNCH + (2 + _TRANSPOSED) * self.moved(of)

    def launched(self, *types: Attribute) -> float:
        """A launch that does nothing but read and write tensors along memory."""
        return LAUNCH + self.moved(*types)

    def product_rates(self) -> tuple[float, float]:
        """Operations of products of halves whose tiles come through registers, and of those that the device copies."""
        last, plain = self._rates()[2]
        return plain, max(last, plain)

    def convolution(self, op: ConvolutionOp) -> tuple[float, float]:
        """A convolution on plain tensors, and with channels last."""
        element, (traffic, work) = byte_width(element_of(op.kernel.type)), self._traffic_and_work(op)
        _, plain = self._rates(op).get(element, _SLOWEST)
        is_depthwise = op.groups.value.data > 1 and dims(op.kernel.type)[1] == 1
        if is_depthwise:  # vectors along the channels, or single elements along the rows
            return 2 * traffic, 1.2 * traffic
        if self.reads_any_order(op):
            is_large = self.number(element_count(op.output.type)) >= _LARGE_RESULT
            rows = self.launched(op.input.type, op.input.type) if is_large and self._is_plain_half(op) else 0.0
            return traffic + work / plain + self._planes_of_few(op), traffic + work / plain + rows
        plain, last = self._by_matrix_units(op)
        return plain - self.saved_by_planes(op), last

    def _by_matrix_units(self, op: ConvolutionOp) -> tuple[float, float]:
        """The same of one that is not depthwise, and has lines of channels where they lie innermost."""
        element, (traffic, work) = byte_width(element_of(op.kernel.type)), self._traffic_and_work(op)
        last, plain = self._rates(op).get(element, _SLOWEST)
        return traffic + work / plain, traffic + work / (last * self._filled(op, _DEPTH))

    def _filled(self, op: ConvolutionOp, line: int) -> float:
        """The part of lines of channels that a convolution fills."""
        element = byte_width(element_of(op.kernel.type))
        depth = self.number(dims(op.input.type)[1]) // op.groups.value.data * element
        return depth / (-(-depth // line) * line)

    def saved_by_planes(self, op: ConvolutionOp) -> float:
        """What a convolution of halves saves that reads planes and writes planes where no launch reorders its input,
        against one on plain tensors as any other.
        """
        more, interleaving = self._more_from_planes(op), self._saved_by_interleaving(op)
        if more is None:
            return interleaving
        plain, last = self._by_matrix_units(op)
        return max(interleaving, plain - last - more)

    def _more_from_planes(self, op: ConvolutionOp) -> float | None:
        """What warpgroups take more for a convolution whose threads put channels side by side, and that writes runs of
        planes, than for one that reads channels innermost and writes them; None where there is no such kernel.
        """
        window, spatial, flips = dims(op.kernel.type)[2:], op.spatial(), op.transposed.value.data
        rows, channels = self.number(dims(op.output.type)[1]), self.number(dims(op.input.type)[1])
        apart = [stride if flips else 1 for stride, _, _, _ in spatial]
        width = -(-self.number(dims(op.output.type)[-1]) // apart[-1])
        fits = self._are_halves(op) and is_constant_like(op.kernel) and len(spatial) in (2, 3)
        fits = fits and apart[-1] in _APART and not (flips and any(dilation != 1 for _, dilation, _, _ in spatial))
        large = channels >= _MIN_BOX_CHANNELS and rows >= _MIN_RESULTS and width >= _BOX_PIXELS
        if not fits or not large or element_of(op.input.type) != element_of(op.kernel.type):
            return None
        tiles = -(-width // _MAX_BOX_PIXELS)
        parts = [(rows, _BOX_RESULTS), (width, tiles * _GROUP_PIXELS)]
        parts += [(self.number(taps), each) for taps, each in zip(window, apart, strict=True)]
        filled = prod(one / (-(-one // each) * each) for one, each in parts) * self._filled(op, _DEPTH // 2)
        _, work = self._traffic_and_work(op)
        slower = work / (_REACHED * _PLANE_BOXES * filled) - work / (_REACHED * self._filled(op, _DEPTH))
        slower += _FILLED * self.moved(op.input.type)
        again = (prod(apart[:-1]) * -(-rows // _SHARED_RESULTS) - 1) * self.moved(op.input.type)
        return slower + again + self._runs(op) * self.moved(op.output.type)

    def _runs(self, op: ConvolutionOp) -> float:
        """What runs of planes cost on top of moving them."""
        of = op.output.type
        starts = self.number(product(dims(of)[2:])) * byte_width(element_of(of))
        return _RUNS if starts % MAX_ACCESS_BYTES == 0 else _PARTED_RUNS

    def _saved_by_interleaving(self, op: ConvolutionOp) -> float:
        """What a deconvolution saves whose threads write the results of all remainders of a row side by side by way of
        shared memory.
        """
        is_half, strides = byte_width(element_of(op.kernel.type)) == _HALF, [stride for stride, _, _, _ in op.spatial()]
        is_plain = is_half and self.has_warpgroups and op.groups.value.data == 1 and is_constant_like(op.kernel)
        sizes = [*dims(op.output.type)[1:], *dims(op.input.type)[2:]]
        fits = len(strides) in (2, 3) and strides[-1] <= _MAX_STRIDE and all(isinstance(size, int) for size in sizes)
        taps, channels = self.number(product(dims(op.kernel.type)[2:])), self.number(sizes[0])
        if not (op.transposed.value.data and is_plain and fits and taps <= _MAX_TAPS and channels >= _MIN_RESULTS):
            return 0.0
        traffic, work = self._traffic_and_work(op)
        places = [-(-self.number(size) // each) for size, each in zip(dims(op.output.type)[2:], strides, strict=True)]
        filled = prod(one / (-(-one // _PLACES) * _PLACES) for one in places[-2:])
        return max(0.0, traffic + work / _RATES[_HALF][1] - max(traffic, work / (_REMAINDERS * filled)))

    def _planes_of_few(self, op: ConvolutionOp) -> float:
        """What a convolution of a few channels pays on top for planes of channels.

        Those of halves have a kernel that reads planes and writes runs of planes, wherever these begin.
        """
        of = op.output.type
        is_lost = self._has_odd_rows(of) and not self._is_kept(of) and not op.transposed.value.data
        if not self.has_warpgroups or not is_lost:
            return 0.0
        return (self._runs(op) if self._is_plain_half(op) else _LOST_LONG_PARTS) * self.moved(of)

    def _is_plain_half(self, op: ConvolutionOp) -> bool:
        """Whether an op is a convolution of halves in one group, on a device with warpgroups."""
        return self._are_halves(op) and not op.transposed.value.data

    def _are_halves(self, op: ConvolutionOp) -> bool:
        """The same, also of a deconvolution."""
        return self.has_warpgroups and byte_width(element_of(op.kernel.type)) == _HALF and op.groups.value.data == 1

    def laid_out_rows(self, op: ConvolutionOp) -> float:
        """A convolution of few channels by warpgroups, behind a launch that lays out the rows of its windows.

        `FORBIDDEN` for others.
        """
        if not (self._is_plain_half(op) and self.reads_any_order(op)):
            return FORBIDDEN
        traffic, work = self._traffic_and_work(op)
        return self.launched(op.input.type, op.input.type) + traffic + work / (_FILLED_ROWS * _RATES[_HALF][0])

    def _traffic_and_work(self, op: ConvolutionOp) -> tuple[float, float]:
        """What a convolution reads and writes, in microseconds, and its operations."""
        counted = dims(op.input.type) if op.transposed.value.data else op.epilogue_dims()
        outputs, taps = product(counted), product(dims(op.kernel.type)[1:])
        return (
            self.moved(op.input.type, op.output.type, op.kernel.type),
            2.0 * self.number(outputs) * self.number(taps),
        )

    def _rates(self, op: ConvolutionOp | None = None) -> Mapping[int, tuple[float, float]]:
        """Of products, or of a convolution: for floats in groups of a few results matrix units have no kernel."""
        by_tensor_memory = self.has_tensor_memory and (op is None or not op.transposed.value.data)
        if not self.has_warpgroups and not by_tensor_memory:
            return _RATES_WITHOUT_WARPGROUPS
        groups = 1 if op is None else op.groups.value.data
        is_wide = op is None or groups == 1 or self.number(dims(op.kernel.type)[0]) >= _MIN_RESULTS * groups
        return _RATES_WITH_TF32 if self.has_tf32 and is_wide else _RATES

    def reads_any_order(self, op: ConvolutionOp) -> bool:
        """Whether a convolution reads single elements, wherever they lie: with few channels, where it rounds them, and
        where its results interleave.
        """
        if op.transposed.value.data and is_float(element_of(op.input.type)) and not self._has_lines(op):
            return True
        if element_of(op.input.type) != element_of(op.kernel.type) and is_float(element_of(op.input.type)):
            return True  # rounded on its way through registers
        element = byte_width(element_of(op.input.type))
        fewest = MAX_ACCESS_BYTES if element == 1 else _DEPTH // 4
        return self.number(dims(op.input.type)[1]) * element < fewest

    def _has_lines(self, op: ConvolutionOp) -> bool:
        """Whether warpgroups compute a deconvolution: they read lines of channels."""
        rate = self._rates(op).get(byte_width(element_of(op.kernel.type)), _SLOWEST)
        return self.has_warpgroups and op.groups.value.data == 1 and rate[0] > rate[1]


def is_constant_like(value: SSAValue) -> bool:
    """Whether a value is known before the run."""
    from mlirt.dialects.trt.constant import ConstantOp

    return isinstance(value.owner, ConstantOp)
