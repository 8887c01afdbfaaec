"""OnnxParser: an ONNX model into a network (tensorrt-features.md#11.1 to 11.6, 11.11, 11.12)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.dialects.context import RtContext
from mlirt.errors import MlirtError, UnsupportedError, UnsupportedOperatorsError
from mlirt.frontend.network.adoption import adopt
from mlirt.frontend.network.definition import INetworkDefinition
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.enumeration import Enumeration
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.later_settings import LaterSetting
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.limits import limits_count
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.plugins.registry import get_plugin_registry
from mlirt.tensorrt.reported_version import reported_version, reports_at_least
from mlirt.tensorrt.reporting import Reporter

if TYPE_CHECKING:
    from onnx import ModelProto

    from mlirt.tensorrt.build_enums import OnnxParserFlag


# How messages name a node.
_NODE = re.compile(r"\(node '([^']*)'")


class ErrorCode(Enumeration):
    """What a parser stumbled over."""

    SUCCESS = 0
    INTERNAL_ERROR = 1
    MEM_ALLOC_FAILED = 2
    MODEL_DESERIALIZE_FAILED = 3
    INVALID_VALUE = 4
    INVALID_GRAPH = 5
    INVALID_NODE = 6
    UNSUPPORTED_GRAPH = 7
    UNSUPPORTED_NODE = 8


class ParserError:
    """Why a model could not be read."""

    def __init__(self, error: MlirtError, node: int = -1) -> None:
        self._error = error
        self._node = node

    def code(self) -> ErrorCode:
        return ErrorCode.UNSUPPORTED_NODE if isinstance(self._error, UnsupportedError) else ErrorCode.INVALID_GRAPH

    def desc(self) -> str:
        """The text, which names the node."""
        return str(self._error)

    def node(self) -> int:
        """The index of the node in the model's graph; -1 where the error is of no single one, or of one inside."""
        return self._node

    def file(self) -> str:
        return "onnx_parser.py"

    def func(self) -> str:
        return "parse"

    def line(self) -> int:
        return 0

    def __str__(self) -> str:
        return f"In node {self.node()} ({self.func()}): {self.code().name}: {self.desc()}"

    __repr__ = __str__


class OnnxParser(FixedAttributes, ContextManager):
    """Appends the layers of models to a network; returns False, and keeps the error, for what it cannot read."""

    def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
        expect("OnnxParser(): network", network, INetworkDefinition)
        expect("OnnxParser(): logger", logger, ILogger)
        self._network = network
        self._reporter = Reporter(logger)
        self._errors: list[ParserError] = []
        self._later: dict[str, object] = {}
        self.fix_attributes()

    flags = LaterSetting((8, 6), 0, int)
    """One bit for each `OnnxParserFlag`; instance normalization is a layer of its own with and without it."""

    if reports_at_least(8, 6):

        def get_used_vc_plugin_libraries(self) -> list[str]:
            """Shared libraries that a version compatible engine would need: none."""
            return []

    def set_flag(self, flag: OnnxParserFlag) -> None:
        self.flags |= 1 << flag

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        self.flags &= ~(1 << flag)

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        return bool(self.flags >> flag & 1)

    def parse(self, model: bytes | bytearray | memoryview, path: str | os.PathLike[str] | None = None) -> bool:
        """Read a model from its bytes; `path` is its file where weights lie beside it."""
        if isinstance(model, str):
            raise TypeError(f"parse(): expected a model's bytes, got {model!r}; parse_from_file reads a file")
        return self._parse(Path(path) if path is not None and Path(path).is_file() else bytes(model))

    def parse_with_weight_descriptors(self, model: bytes | bytearray | memoryview) -> bool:
        """The same as `parse`."""
        return self._parse(bytes(model))

    def parse_from_file(self, path: str | os.PathLike[str]) -> bool:
        """Read a model from its file."""
        return self._parse(Path(path))

    def _parse(self, model: bytes | Path) -> bool:
        from mlirt.frontend.onnx.importer import import_model
        from mlirt.frontend.onnx.model_reader import read_model

        ctx, labels = RtContext(), list[str]()
        try:
            if self._network.graph.has_implicit_batch:
                raise UnsupportedError("models need a network with an explicit batch: NetworkDefinitionCreationFlag")
            source = read_model(model)
            labels = _labels(source.proto)
            warnings = _within_limits(source.proto) if limits_count() else []
            other_types = adopt(import_model(source, ctx, keeps_layers=True), ctx.weights, self._network)
            if limits_count() and not reports_at_least(10) and _has_wide_weights(self._network):
                warnings.append(_cast_down("INT64", "INT32"))
            for warning in warnings:
                self._reporter.warning(warning)
            if other_types:
                self._reporter.warning(
                    f"{', '.join(other_types)}: of another type here than in the model, as TensorRT "
                    f"{reported_version()} lacks it; numbers that INT32 cannot hold become the nearest that it can"
                )
        except MlirtError as error:
            self._errors += _parser_errors(error, labels)
            self._reporter.error("onnx_parser.py::parse", error)
            return False
        return True

    def supports_operator(self, op_name: str) -> bool:
        """Whether nodes of an op type can be read; the creator of a plugin may be of any version."""
        from mlirt.frontend.onnx.handlers import supported_ops
        from mlirt.frontend.onnx.tensorrt_limits import REFUSED_OPERATORS

        if limits_count() and op_name in REFUSED_OPERATORS:
            return False
        plugins = [creator.name for creator in get_plugin_registry().all_creators]
        return ("", op_name) in supported_ops() or op_name in plugins

    def supports_model(
        self, model: bytes | bytearray | memoryview, path: str | os.PathLike[str] | None = None
    ) -> tuple[bool, Sequence[tuple[list[int], bool]]]:
        """Whether a model can be read, and runs of its nodes with whether their op types can."""
        from mlirt.frontend.onnx.importer import import_model
        from mlirt.frontend.onnx.model_reader import read_model

        source = Path(path) if path is not None and Path(path).is_file() else bytes(model)
        known: list[bool] = []
        labels: list[str] = []
        try:
            read = read_model(source)
            labels = _labels(read.proto)
            known = [self.supports_operator(node.op_type) for node in read.proto.graph.node]
            if limits_count():
                _within_limits(read.proto)
            import_model(read, RtContext())
        except UnsupportedError as error:
            self._errors += _parser_errors(error, labels)
            return False, [] if all(known) else _runs(known)
        except MlirtError as error:
            self._errors += _parser_errors(error, labels)
            return False, []
        return all(known), _runs(known)

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """An error; raises `IndexError` where there is none."""
        return self._errors[index]

    def clear_errors(self) -> None:
        self._errors.clear()


def get_nv_onnx_parser_version() -> int:
    """The version of TensorRT that is reported, such as 8.5.3, as one number, 80503 (tensorrt-features.md#11.16)."""
    major, minor, patch = (int(part) for part in reported_version().split(".")[:3])
    return major * 10000 + minor * 100 + patch


def shutdown_protobuf_library() -> None:
    """Nothing: readers of models keep no global state (tensorrt-features.md#11.16)."""


def _within_limits(model: ModelProto) -> list[str]:
    """What is to be warned of before a model is read as TensorRT does (tensorrt-features.md#11.8, 11.17).

    Raises `UnsupportedOperatorsError` for what TensorRT refuses.
    """
    from mlirt.frontend.onnx.tensorrt_limits import check_limits, has_double_weights, without_seeds

    check_limits(model)
    doubles = [_cast_down("DOUBLE", "FLOAT")] if has_double_weights(model) else []
    return [*doubles, *without_seeds(model)]


def _cast_down(wide: str, narrow: str) -> str:
    return (
        f"Your ONNX model has been generated with {wide} weights, while TensorRT does not natively support {wide}. "
        f"Attempting to cast down to {narrow}. (mlirt computes with {wide} inside.)"
    )


def _has_wide_weights(network: INetworkDefinition) -> bool:
    records = [record for record in network.graph.records if record.type is LayerType.CONSTANT]
    return any(one.outputs[0].dtype is DataType.INT64 for one in records)


def _labels(model: ModelProto) -> list[str]:
    """What messages call the nodes of the model's graph, in its order."""
    from mlirt.frontend.onnx.node_order import node_label

    return [node_label(node, index) for index, node in enumerate(model.graph.node)]


def _parser_errors(error: MlirtError, labels: Sequence[str]) -> list[ParserError]:
    """One for each operator and reason where several nodes are refused."""
    if isinstance(error, UnsupportedOperatorsError):
        refused = [(UnsupportedError(str(one)), next(iter(one.nodes), "")) for one in error.refusals]
        return [ParserError(one, _index(label, labels)) for one, label in refused]
    named = _NODE.search(str(error))
    return [ParserError(error, _index(named[1], labels) if named else -1)]


def _index(label: str, labels: Sequence[str]) -> int:
    return labels.index(label) if label in labels else -1


def _runs(known: Sequence[bool]) -> list[tuple[list[int], bool]]:
    """Neighbours with the same answer, together."""
    runs: list[tuple[list[int], bool]] = []
    for index, fits in enumerate(known):
        if runs and runs[-1][1] == fits:
            runs[-1][0].append(index)
        else:
            runs.append(([index], fits))
    return runs
