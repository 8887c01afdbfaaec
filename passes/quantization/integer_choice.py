"""Decides which layers of a network compute in int8, and which of their operands are rounded for it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.counted_warnings import warn
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.layer_precisions import LayerPrecisions, Precision
from mlirt.dialects.tensor_op import TensorOp
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.integer_operands import SMOOTHING, is_average, is_residual, only_reader, weight_axis
from mlirt.passes.quantization.small_products import small_products
from mlirt.passes.quantization.smoothing import unsmoothed_layers
from mlirt.passes.quantization.tensor_ranges import TensorRanges


class IntegerChoice:
    """`operands()` has the layers that compute in int8, in order, with the operands that are rounded for each."""

    def __init__(self, module: ModuleOp, ranges: TensorRanges) -> None:
        self._block = entry_function(module).body.block
        self._ranges = ranges
        self._unsmoothed = unsmoothed_layers(module)
        self._asked = LayerPrecisions(module)
        self._missing: dict[str, None] = {}
        self._chosen: dict[Operation, tuple[int, ...]] = {}

    def operands(self) -> dict[TensorOp, tuple[int, ...]]:
        """Raises `InvalidInputError` where no tensor has a range; warns of each that lacks one."""
        self._check_names()
        layers = [op for op in self._block.ops if isinstance(op, TensorOp) and not self._stays_float(op)]
        small = small_products(self._block)
        products = [op for op in layers if weight_axis(op) is not None and (op not in small or self._is_asked(op))]
        self._chosen = {op: (0,) for op in products if self._is_covered(op)}
        additions = {op: self._residuals(op) for op in layers if is_residual(op) and op not in self._unsmoothed}
        self._chosen |= {op: positions for op, positions in additions.items() if positions}
        for op in reversed(layers):
            if is_average(op) and op not in self._unsmoothed and self._is_between_integers(op) and self._has_int8(op):
                self._chosen[op] = (0,)
        self._warn()
        return {op: self._chosen[op] for op in layers if op in self._chosen}

    def _check_names(self) -> None:
        values = list(self._ranges.names)
        if values and all(self._ranges.of(value) is None for value in values):
            raise InvalidInputError(
                f"Could not find scales for tensor {self._ranges.name(values[0])!r}, nor for any other tensor: "
                "the calibration is of another network; calibrate this one"
            )

    def _stays_float(self, op: Operation) -> bool:
        return self._asked.of(op) not in (None, Precision.INT8)

    def _is_asked(self, op: Operation) -> bool:
        return self._asked.of(op) is Precision.INT8

    def _is_covered(self, op: TensorOp) -> bool:
        """Whether the ranges of what a product reads and makes are known (tensorrt-features.md#9.21)."""
        return self._has_range(op.operands[0]) and (
            self._result_is_known(op.results[0]) or self._has_range(op.results[0])
        )

    def _has_range(self, value: SSAValue) -> bool:
        known = self._ranges.of(value) is not None
        if not known:
            self._missing[self._ranges.name(value)] = None
        return known

    def _result_is_known(self, value: SSAValue) -> bool:
        """Whether a range is known at the latest where the next product reads; outputs of the network need none."""
        if self._ranges.of(value) is not None:
            return True
        readers = {use.operation for use in value.uses}
        return all(
            isinstance(op, ReturnOp)
            or (not isinstance(op, SMOOTHING) and all(map(self._result_is_known, op.results)) and bool(op.results))
            for op in readers
        )

    def _residuals(self, op: TensorOp) -> tuple[int, ...]:
        """The operands of an addition that are rounded: all but that of the product which takes the addition over."""
        own = [k for k, value in enumerate(op.operands) if value.owner in self._chosen and only_reader(value) is op]
        if not own:
            positions = (0, 1) if self._is_between_integers(op) else ()
        else:
            last = own[-1] if len(own) == 1 or self._is_later(op.operands[1], op.operands[0]) else own[0]
            positions = (1 - last,)
        fits = all(self._has_range(op.operands[k]) and self._is_read_as_int8(op.operands[k]) for k in positions)
        return positions if fits else ()

    def _is_read_as_int8(self, value: SSAValue) -> bool:
        """Whether only the bytes of a tensor are stored: where a layer reads the numbers too, nothing is saved."""
        return all(use.operation in self._chosen or is_residual(use.operation) for use in value.uses)

    def _has_int8(self, op: TensorOp) -> bool:
        """Whether a product reads the same bytes: for an average alone rounding would cost more than it saves."""
        return any(use.operation in self._chosen for use in op.operands[0].uses)

    def _is_later(self, one: SSAValue, other: SSAValue) -> bool:
        places = {op: place for place, op in enumerate(self._block.ops)}
        return places[one.owner] > places[other.owner]  # pyright: ignore[reportArgumentType]

    def _is_between_integers(self, op: TensorOp) -> bool:
        """Whether all that read a layer's result, through layers that round nothing, compute in int8."""
        known = all(self._ranges.of(value) is not None for value in (op.operands[0], op.results[0]))
        readers = {use.operation for use in op.results[0].uses}
        return known and bool(readers) and all(map(self._reads_integers, readers))

    def _reads_integers(self, op: Operation) -> bool:
        if op in self._chosen:
            return True
        passing = isinstance(op, TensorOp) and len(op.results) == 1 and not isinstance(op, SMOOTHING)
        readers = {use.operation for result in op.results for use in result.uses}
        return passing and bool(readers) and all(map(self._reads_integers, readers))

    def _warn(self) -> None:
        for name in self._missing:
            warn(
                f"Missing scale and zero-point for tensor {name}, expect fall back to non-int8 implementation for "
                "any layer consuming or producing given tensor",
                stacklevel=2,
            )
