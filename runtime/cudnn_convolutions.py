"""A convolution with a bias and a rectifier as one graph of cuDNN, and the ways that the library proposes for it."""

from collections.abc import Iterator, Sequence
from ctypes import c_void_p

from mlirt.errors import PlanError
from mlirt.runtime.cudnn_descriptors import Call, Descriptor, Field, Kind
from mlirt.runtime.library_calls import LibraryConvolution

# As the library numbers them.
_ELEMENTS = {"float32": 0, "float16": 2, "bfloat16": 9}
_CORRELATION = 1
_ADD, _RELU = 0, 100
_NAN_PASSES = 1
_BY_ESTIMATE, _FALLBACK = 3, 2  # where proposals come from
_MATRIX_UNITS, _ROUNDED_INPUTS, _ROUNDED_SUMS, _ANY_ORDER = 0, 1, 2, 4  # notes of an engine
_MAX_PROPOSALS, _MAX_NOTES = 64, 32

INPUT, KERNEL, RESULT, BIAS = 1, 2, 3, 4
"""What the tensors of the graph are called."""
_BETWEEN = 10
_ALIGNED = 16


class ConvolutionGraph:
    """A convolution of known sizes; what is between its steps stays in float32, and is never in memory."""

    def __init__(
        self, call: Call, handle: c_void_p, what: LibraryConvolution, numbers: Sequence[int], alignments: Sequence[int]
    ) -> None:
        self._call, self._handle, self._what = call, handle, what
        images, channels, height, width, kernels, down, across, rows, columns = numbers
        self._sizes = (images, kernels, rows, columns)
        given = self._tensor(INPUT, what.elements[0], (images, channels, height, width), alignments[0])
        taps = (kernels, channels // what.groups, down, across)
        kernel = self._tensor(KERNEL, what.elements[1], taps, alignments[1])
        self._result = self._tensor(RESULT, what.elements[2], self._sizes, alignments[2])
        steps: list[Descriptor | None] = []
        if what.is_biased:
            steps.append(self._tensor(BIAS, what.elements[3], (1, kernels, 1, 1), alignments[3]))
        if what.activation == "relu":
            steps.append(None)
        total = self._after(0, len(steps))
        ops = [
            self._new(Kind.CONVOLVE)
            .set(Field.CONVOLVE_WINDOW, self._window())
            .set(Field.CONVOLVE_INPUT, given)
            .set(Field.CONVOLVE_KERNEL, kernel)
            .set(Field.CONVOLVE_RESULT, total)
            .set(Field.CONVOLVE_FACTOR, 1.0)
            .set(Field.CONVOLVE_OLD_FACTOR, 0.0)
            .finish()
        ]
        for number, bias in enumerate(steps, 1):
            before, total = total, self._after(number, len(steps))
            ops.append(self._applied(before, bias, total))
        self._graph = self._new(Kind.GRAPH).set(Field.GRAPH_HANDLE, handle.value).set(Field.GRAPH_OPS, *ops).finish()
        self._found, self._rest = list[Descriptor](), self._ways()

    def way(self, number: int) -> Descriptor | None:
        """The plan of that number among those that give the same bits in every run and need no more memory."""
        while len(self._found) <= number:
            found = next(self._rest, None)
            if found is None:
                return None
            self._found.append(found)
        return self._found[number]

    def _ways(self) -> Iterator[Descriptor]:
        for source in (_BY_ESTIMATE, _FALLBACK):
            for config in self._proposed(source):
                try:
                    engine = self._new(Kind.ENGINE)
                    config.fill(Field.CONFIG_ENGINE, [engine])
                    if not self._refused().isdisjoint(engine.numbers(Field.ENGINE_NOTES, _MAX_NOTES)):
                        continue
                    plan = self._new(Kind.PLAN).set(Field.PLAN_HANDLE, self._handle.value)
                    plan.set(Field.PLAN_CONFIG, config).finish()
                except PlanError:  # a proposal that turns out not to support this
                    continue
                if plan.numbers(Field.PLAN_WORKSPACE, 1) <= [self._what.workspace_bytes]:
                    yield plan

    def _proposed(self, source: int) -> list[Descriptor]:
        asked = self._new(Kind.HEURISTICS).set(Field.HEURISTICS_GRAPH, self._graph)
        try:
            asked.set(Field.HEURISTICS_MODE, source).finish()
        except PlanError:
            return []
        found = [self._new(Kind.CONFIG) for _ in range(_MAX_PROPOSALS)]
        return found[: asked.fill(Field.HEURISTICS_RESULTS, found)]

    def _refused(self) -> set[int]:
        exact = self._what.elements[0] == "float32" and not self._what.rounded
        return {_ANY_ORDER, _ROUNDED_SUMS, *((_MATRIX_UNITS, _ROUNDED_INPUTS) if exact else ())}

    def _window(self) -> Descriptor:
        what, made = self._what, self._new(Kind.CONVOLUTION)
        made.set(Field.CONVOLUTION_SUMS, _ELEMENTS["float32"]).set(Field.CONVOLUTION_MODE, _CORRELATION)
        made.set(Field.CONVOLUTION_RANK, len(what.stride))
        made.set(Field.CONVOLUTION_STRIDE, *what.stride).set(Field.CONVOLUTION_DILATION, *what.dilation)
        made.set(Field.CONVOLUTION_PADDING_BEFORE, *what.padding).set(Field.CONVOLUTION_PADDING_AFTER, *what.padding)
        return made.finish()

    def _applied(self, before: Descriptor, bias: Descriptor | None, after: Descriptor) -> Descriptor:
        """A bias added, or the rectifier where there is none."""
        function = self._new(Kind.POINTWISE).set(Field.POINTWISE_MODE, _RELU if bias is None else _ADD)
        function.set(Field.POINTWISE_PRECISION, _ELEMENTS["float32"])
        if bias is None:
            function.set(Field.POINTWISE_NAN, _NAN_PASSES)
        function.finish()
        made = self._new(Kind.APPLY).set(Field.APPLY_POINTWISE, function).set(Field.APPLY_INPUT, before)
        if bias is not None:
            made.set(Field.APPLY_OTHER, bias)
        return made.set(Field.APPLY_RESULT, after).finish()

    def _after(self, step: int, count: int) -> Descriptor:
        """What a step makes: the result in memory behind the last one."""
        return self._result if step == count else self._tensor(_BETWEEN + step, "float32", self._sizes, 0)

    def _tensor(self, name: int, element: str, sizes: tuple[int, int, int, int], alignment: int) -> Descriptor:
        """A tensor without gaps, in the order of the images; one without an alignment is never in memory."""
        _, channels, height, width = sizes
        inner = (1, width * channels, channels) if self._what.channels_last else (height * width, width, 1)
        made = self._new(Kind.TENSOR).set(Field.TENSOR_ELEMENT, _ELEMENTS[element]).set(Field.TENSOR_SIZES, *sizes)
        made.set(Field.TENSOR_STRIDES, channels * height * width, *inner).set(Field.TENSOR_ID, name)
        made.set(Field.TENSOR_ALIGNMENT, alignment or _ALIGNED)
        return (made if alignment else made.set(Field.TENSOR_IS_VIRTUAL, 1)).finish()

    def _new(self, kind: Kind) -> Descriptor:
        return Descriptor(self._call, kind)
