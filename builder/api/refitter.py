"""Refitter: other weights for an engine (tensorrt-features.md#14.1 to 14.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirt.builder.calibration.ranges_for_build import reach
from mlirt.builder.compared_scales import ComparedScales, check_equal, equal_scales
from mlirt.builder.refit import KeptNetwork
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.engine import Engine
from mlirt.tensorrt.build_enums import WeightsRole
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.limits import limits_count
from mlirt.tensorrt.reporting import Reporter, Reporting
from mlirt.tensorrt.weights import Weights, as_weights

if TYPE_CHECKING:
    from mlirt.dialects.trt.constant import ConstantOp
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.tensorrt.logger import ILogger
    from mlirt.tensorrt.weights import Array


class Refitter(Reporting, ContextManager):
    """Takes weights, by layer and role or by name, and gives them to an engine; its contexts stay valid.

    The network is compiled again, so that weights which were folded into each other may be changed one by one, and none
    is ever missing. Raises `InvalidInputError` for an engine that was built without BuilderFlag.REFIT.
    """

    def __init__(self, engine: ICudaEngine, logger: ILogger) -> None:
        self.logger = logger
        self.reporter = Reporter(logger, engine.reporter.recorder)
        self.max_threads = 0
        self._engine = engine
        self._network = KeptNetwork(engine.engine.plan)
        self._equal = self._equal_scales()
        self.fix_attributes()

    def set_weights(self, layer_name: str, role: WeightsRole, weights: Weights | Array) -> bool:
        """False, with the reason in the log, for a layer without such weights, or another number of them."""
        label = f"{layer_name}: {role.name}"
        found = self._network.of_layers.get((layer_name, role.name.lower()))
        return self._set(label, weights, [] if found is None else [found])

    def set_named_weights(self, name: str, weights: Weights | Array) -> bool:
        """The same for weights by their name: that of an ONNX initializer, or of `set_weights_name`."""
        return self._set(name, weights, self._network.named.get(name, []))

    def _set(self, label: str, weights: Weights | Array, constants: Sequence[ConstantOp]) -> bool:
        try:
            if not constants:
                raise InvalidInputError(f"{label}: the engine has no such weights")
            self._network.replace(constants, as_weights(weights).numpy(), label)
        except MlirtError as error:
            self.reporter.error("refitter.py::setWeights", error)
            return False
        return True

    def get_all(self) -> tuple[list[str], list[WeightsRole]]:
        """The layers with weights, and what their weights are to them."""
        pairs = list(self._network.of_layers)
        return [layer for layer, _ in pairs], [WeightsRole[role.upper()] for _, role in pairs]

    def get_all_weights(self) -> list[str]:
        """The names of all weights that have one."""
        return list(self._network.named)

    def get_missing(self) -> tuple[list[str], list[WeightsRole]]:
        """None: those that are not set stay as they are."""
        return [], []

    def get_missing_weights(self) -> list[str]:
        """None: those that are not set stay as they are."""
        return []

    def get_tensors_with_dynamic_range(self) -> list[str]:
        """The tensors whose ranges the engine was built with."""
        return list(self._network.ranges)

    def get_dynamic_range(self, tensor_name: str) -> tuple[float, float]:
        """The range of a tensor; raises `InvalidInputError` for one without."""
        if tensor_name not in self._network.ranges:
            raise InvalidInputError(f"the engine has no range of {tensor_name!r}")
        largest = self._network.ranges[tensor_name]
        return -largest, largest

    def set_dynamic_range(self, tensor_name: str, range: tuple[float, float]) -> bool:
        """False for a tensor whose range the engine was not built with, and for what is no range."""
        try:
            if tensor_name not in self._network.ranges:
                raise InvalidInputError(f"the engine has no range of {tensor_name!r}")
            self._network.set_range(tensor_name, reach(tensor_name, range))
        except MlirtError as error:
            self.reporter.error("refitter.py::setDynamicRange", error)
            return False
        return True

    def refit_cuda_engine(self) -> bool:
        """Give the engine the weights; False, with the reason in the log, where it cannot be built with them.

        Scales that were equal and were compared by the build stay equal (tensorrt-features.md#10.18).
        """
        try:
            check_equal(self._equal, self._network.ctx.weights)
            self._engine.exchange(Engine(self._network.plan()))
            self._network = KeptNetwork(self._engine.engine.plan)
            self._equal = self._equal_scales()
        except MlirtError as error:
            self.reporter.error("refitter.py::refitCudaEngine", error)
            return False
        return True

    def _equal_scales(self) -> list[ComparedScales]:
        return equal_scales(self._network.module, self._network.ctx.weights) if limits_count() else []
