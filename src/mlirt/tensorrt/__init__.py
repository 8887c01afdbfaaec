"""TensorRT's Python names (8.5): what `import mlirt as trt` offers besides its own.

Names are resolved on first use, so that importing costs nothing. The packages of this folder are the words that
network, builder and runtime share: enumerations, dimensions, weights, loggers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlirt.errors import missing_package
from mlirt.tensorrt.reported_version import reported_version, reports_at_least

if TYPE_CHECKING:
    from mlirt.builder.api.builder import Builder
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.builder.api.optimization_profile import IOptimizationProfile
    from mlirt.builder.api.refitter import Refitter
    from mlirt.builder.calibration.calibrators import (
        CalibrationAlgoType,
        IInt8Calibrator,
        IInt8EntropyCalibrator,
        IInt8EntropyCalibrator2,
        IInt8LegacyCalibrator,
        IInt8MinMaxCalibrator,
    )
    from mlirt.builder.tactics.algorithm_selector import Algorithm as IAlgorithm
    from mlirt.builder.tactics.algorithm_selector import AlgorithmContext as IAlgorithmContext
    from mlirt.builder.tactics.algorithm_selector import AlgorithmIOInfo as IAlgorithmIOInfo
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector as IAlgorithmSelector
    from mlirt.builder.tactics.algorithm_selector import AlgorithmVariant as IAlgorithmVariant
    from mlirt.builder.tactics.timing_cache import TimingCache as ITimingCache
    from mlirt.frontend.network.conditionals import (
        IConditionLayer,
        IIfConditional,
        IIfConditionalBoundaryLayer,
        IIfConditionalInputLayer,
        IIfConditionalOutputLayer,
    )
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.frontend.network.layer import ILayer
    from mlirt.frontend.network.layers_index import IGatherLayer, INonZeroLayer, IOneHotLayer, IScatterLayer
    from mlirt.frontend.network.layers_move import (
        IConcatenationLayer,
        IPaddingLayer,
        IShapeLayer,
        IShuffleLayer,
        ISliceLayer,
    )
    from mlirt.frontend.network.layers_plugin import IPluginV2Layer, IPluginV3Layer
    from mlirt.frontend.network.layers_pointwise import (
        IActivationLayer,
        IElementWiseLayer,
        IIdentityLayer,
        IParametricReLULayer,
        IScaleLayer,
        ISelectLayer,
        IUnaryLayer,
    )
    from mlirt.frontend.network.layers_product import IEinsumLayer, IFullyConnectedLayer, IMatrixMultiplyLayer
    from mlirt.frontend.network.layers_quantize import IDequantizeLayer, IQuantizeLayer
    from mlirt.frontend.network.layers_recurrent import IRNNv2Layer
    from mlirt.frontend.network.layers_reduce import ILRNLayer, IReduceLayer, ISoftMaxLayer, ITopKLayer
    from mlirt.frontend.network.layers_rest import IAssertionLayer, IRaggedSoftMaxLayer
    from mlirt.frontend.network.layers_sample import IGridSampleLayer, IResizeLayer
    from mlirt.frontend.network.layers_source import IConstantLayer, IFillLayer
    from mlirt.frontend.network.layers_suppress import INMSLayer
    from mlirt.frontend.network.layers_window import IConvolutionLayer, IDeconvolutionLayer, IPoolingLayer
    from mlirt.frontend.network.loops import (
        IIteratorLayer,
        ILoop,
        ILoopBoundaryLayer,
        ILoopOutputLayer,
        IRecurrenceLayer,
        ITripLimitLayer,
    )
    from mlirt.frontend.network.onnx_parser import (
        ErrorCode,
        OnnxParser,
        ParserError,
        get_nv_onnx_parser_version,
        shutdown_protobuf_library,
    )
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.api.debug_listener import IDebugListener
    from mlirt.runtime.api.engine_inspector import EngineInspector
    from mlirt.runtime.api.execution_context import IExecutionContext
    from mlirt.runtime.api.host_memory import IHostMemory
    from mlirt.runtime.api.output_allocator import IOutputAllocator
    from mlirt.runtime.api.profiler import IProfiler, Profiler
    from mlirt.runtime.api.runtime import Runtime
    from mlirt.tensorrt.aliases import ResizeMode, SliceMode, bool, float16, float32, int8, int32, uint8
    from mlirt.tensorrt.build_enums import (
        BuilderFlag,
        DeviceType,
        EngineCapability,
        MemoryPoolType,
        NetworkDefinitionCreationFlag,
        PreviewFeature,
        ProfilingVerbosity,
        QuantizationFlag,
        TacticSource,
        WeightsRole,
    )
    from mlirt.tensorrt.data_types import DataType, nptype
    from mlirt.tensorrt.dims import Dims, Dims2, Dims3, Dims4, DimsHW, Permutation, volume
    from mlirt.tensorrt.error_recorder import ErrorCodeTRT, IErrorRecorder
    from mlirt.tensorrt.gpu_allocator import AllocatorFlag, IGpuAllocator
    from mlirt.tensorrt.layer_enums import (
        ActivationType,
        BoundingBoxFormat,
        ElementWiseOperation,
        FillOperation,
        GatherMode,
        InterpolationMode,
        LayerType,
        LoopOutput,
        MatrixOperation,
        PaddingMode,
        PoolingType,
        ReduceOperation,
        ResizeCoordinateTransformation,
        ResizeRoundMode,
        ResizeSelector,
        RNNDirection,
        RNNGateType,
        RNNInputMode,
        RNNOperation,
        SampleMode,
        ScaleMode,
        ScatterMode,
        TopKOperation,
        TripLimit,
        UnaryOperation,
    )
    from mlirt.tensorrt.logger import ILogger, Logger, Severity
    from mlirt.tensorrt.plugins.built_in import init_libnvinfer_plugins
    from mlirt.tensorrt.plugins.fields import (
        PluginField,
        PluginFieldCollection,
        PluginFieldCollection_,
        PluginFieldType,
    )
    from mlirt.tensorrt.plugins.plugin import IPluginV2, IPluginV2DynamicExt, IPluginV2Ext, IPluginV2IOExt
    from mlirt.tensorrt.plugins.plugin_v3 import (
        IPluginCreatorV3One,
        IPluginV3,
        IPluginV3OneBuild,
        IPluginV3OneCore,
        IPluginV3OneRuntime,
        PluginCapabilityType,
        TensorRTPhase,
    )
    from mlirt.tensorrt.plugins.registry import (
        IPluginCreator,
        IPluginCreatorInterface,
        IPluginRegistry,
        get_plugin_registry,
    )
    from mlirt.tensorrt.plugins.shape_expressions import DimensionOperation, DimsExprs, IDimensionExpr, IExprBuilder
    from mlirt.tensorrt.plugins.tensor_descriptions import DynamicPluginTensorDesc, PluginTensorDesc
    from mlirt.tensorrt.refusals import CaffeParser, UffParser
    from mlirt.tensorrt.run_enums import LayerInformationFormat, TensorFormat, TensorIOMode, TensorLocation
    from mlirt.tensorrt.weights import Weights

# That of TensorRT whose names these are, or the one that was asked for: scripts choose their way by it.
__version__ = reported_version()
# The module of each name.
_HOMES = {
    "mlirt.builder.api.builder": "Builder",
    "mlirt.builder.api.builder_config": "IBuilderConfig",
    "mlirt.builder.api.optimization_profile": "IOptimizationProfile",
    "mlirt.builder.api.refitter": "Refitter",
    "mlirt.builder.calibration.calibrators": (
        "CalibrationAlgoType IInt8Calibrator IInt8EntropyCalibrator IInt8EntropyCalibrator2 IInt8LegacyCalibrator "
        "IInt8MinMaxCalibrator"
    ),
    "mlirt.frontend.network.conditionals": (
        "IConditionLayer IIfConditional IIfConditionalBoundaryLayer IIfConditionalInputLayer IIfConditionalOutputLayer"
    ),
    "mlirt.frontend.network.definition": "INetworkDefinition",
    "mlirt.frontend.network.layer": "ILayer",
    "mlirt.frontend.network.layers_index": "IGatherLayer INonZeroLayer IOneHotLayer IScatterLayer",
    "mlirt.frontend.network.layers_move": "IConcatenationLayer IPaddingLayer IShapeLayer IShuffleLayer ISliceLayer",
    "mlirt.frontend.network.layers_plugin": "IPluginV2Layer IPluginV3Layer",
    "mlirt.frontend.network.layers_pointwise": (
        "IActivationLayer IElementWiseLayer IIdentityLayer IParametricReLULayer IScaleLayer ISelectLayer IUnaryLayer"
    ),
    "mlirt.frontend.network.layers_product": "IEinsumLayer IFullyConnectedLayer IMatrixMultiplyLayer",
    "mlirt.frontend.network.layers_quantize": "IDequantizeLayer IQuantizeLayer",
    "mlirt.frontend.network.layers_recurrent": "IRNNv2Layer",
    "mlirt.frontend.network.layers_reduce": "ILRNLayer IReduceLayer ISoftMaxLayer ITopKLayer",
    "mlirt.frontend.network.layers_rest": "IAssertionLayer IRaggedSoftMaxLayer",
    "mlirt.frontend.network.layers_sample": "IGridSampleLayer IResizeLayer",
    "mlirt.frontend.network.layers_source": "IConstantLayer IFillLayer",
    "mlirt.frontend.network.layers_suppress": "INMSLayer",
    "mlirt.frontend.network.layers_window": "IConvolutionLayer IDeconvolutionLayer IPoolingLayer",
    "mlirt.frontend.network.loops": (
        "IIteratorLayer ILoop ILoopBoundaryLayer ILoopOutputLayer IRecurrenceLayer ITripLimitLayer"
    ),
    "mlirt.frontend.network.onnx_parser": (
        "ErrorCode OnnxParser ParserError get_nv_onnx_parser_version shutdown_protobuf_library"
    ),
    "mlirt.frontend.network.tensor": "ITensor",
    "mlirt.runtime.api.cuda_engine": "ICudaEngine",
    "mlirt.runtime.api.engine_inspector": "EngineInspector",
    "mlirt.runtime.api.execution_context": "IExecutionContext",
    "mlirt.runtime.api.host_memory": "IHostMemory",
    "mlirt.runtime.api.debug_listener": "IDebugListener",
    "mlirt.runtime.api.output_allocator": "IOutputAllocator",
    "mlirt.runtime.api.profiler": "IProfiler Profiler",
    "mlirt.runtime.api.runtime": "Runtime",
    "mlirt.tensorrt.aliases": "ResizeMode SliceMode bool float16 float32 int32 int8 uint8",
    "mlirt.tensorrt.build_enums": (
        "BuilderFlag DeviceType EngineCapability MemoryPoolType NetworkDefinitionCreationFlag PreviewFeature "
        "ProfilingVerbosity QuantizationFlag TacticSource WeightsRole"
    ),
    "mlirt.tensorrt.data_types": "DataType nptype",
    "mlirt.tensorrt.dims": "Dims Dims2 Dims3 Dims4 DimsHW Permutation volume",
    "mlirt.tensorrt.error_recorder": "ErrorCodeTRT IErrorRecorder",
    "mlirt.tensorrt.gpu_allocator": "AllocatorFlag IGpuAllocator",
    "mlirt.tensorrt.layer_enums": (
        "ActivationType BoundingBoxFormat ElementWiseOperation FillOperation GatherMode InterpolationMode LayerType "
        "LoopOutput MatrixOperation PaddingMode PoolingType RNNDirection RNNGateType RNNInputMode RNNOperation "
        "ReduceOperation ResizeCoordinateTransformation ResizeRoundMode ResizeSelector SampleMode ScaleMode "
        "ScatterMode TopKOperation TripLimit UnaryOperation"
    ),
    "mlirt.tensorrt.logger": "ILogger Logger Severity",
    "mlirt.tensorrt.plugins.built_in": "init_libnvinfer_plugins",
    "mlirt.tensorrt.plugins.fields": "PluginField PluginFieldCollection PluginFieldCollection_ PluginFieldType",
    "mlirt.tensorrt.plugins.plugin": "IPluginV2 IPluginV2DynamicExt IPluginV2Ext IPluginV2IOExt",
    "mlirt.tensorrt.plugins.plugin_v3": (
        "IPluginCreatorV3One IPluginV3 IPluginV3OneBuild IPluginV3OneCore IPluginV3OneRuntime PluginCapabilityType "
        "TensorRTPhase"
    ),
    "mlirt.tensorrt.plugins.registry": "IPluginCreator IPluginCreatorInterface IPluginRegistry get_plugin_registry",
    "mlirt.tensorrt.plugins.shape_expressions": "DimensionOperation DimsExprs IDimensionExpr IExprBuilder",
    "mlirt.tensorrt.plugins.tensor_descriptions": "DynamicPluginTensorDesc PluginTensorDesc",
    "mlirt.tensorrt.refusals": "CaffeParser UffParser",
    "mlirt.tensorrt.run_enums": "LayerInformationFormat TensorFormat TensorIOMode TensorLocation",
    "mlirt.tensorrt.weights": "Weights",
}
# The names that mlirt's own classes have here.
_RENAMED = {
    "ITimingCache": ("mlirt.builder.tactics.timing_cache", "TimingCache"),
    "IAlgorithm": ("mlirt.builder.tactics.algorithm_selector", "Algorithm"),
    "IAlgorithmIOInfo": ("mlirt.builder.tactics.algorithm_selector", "AlgorithmIOInfo"),
    "IAlgorithmVariant": ("mlirt.builder.tactics.algorithm_selector", "AlgorithmVariant"),
    "IAlgorithmContext": ("mlirt.builder.tactics.algorithm_selector", "AlgorithmContext"),
    "IAlgorithmSelector": ("mlirt.builder.tactics.algorithm_selector", "AlgorithmSelector"),
}
_LATER_LAYERS = "mlirt.frontend.network.layers_later"
# Names of later versions, which programs look for to know what they may do.
_LATER = {
    "bfloat16": ("mlirt.tensorrt.aliases", (10,)),
    "int64": ("mlirt.tensorrt.aliases", (10,)),
    "fp8": ("mlirt.tensorrt.aliases", (8, 6)),
    "HardwareCompatibilityLevel": ("mlirt.tensorrt.build_enums", (8, 6)),
    "OnnxParserFlag": ("mlirt.tensorrt.build_enums", (8, 6)),
    "TempfileControlFlag": ("mlirt.tensorrt.run_enums", (8, 6)),
    "ICastLayer": (_LATER_LAYERS, (8, 6)),
    "INormalizationLayer": (_LATER_LAYERS, (8, 6)),
    "IReverseSequenceLayer": (_LATER_LAYERS, (8, 6)),
}
_PLACES = {
    **{name: (home, name) for home, names in _HOMES.items() for name in names.split()},
    **_RENAMED,
    **{name: (home, name) for name, (home, since) in _LATER.items() if reports_at_least(*since)},
}

__all__ = [
    "ActivationType",
    "AllocatorFlag",
    "BoundingBoxFormat",
    "Builder",
    "BuilderFlag",
    "CaffeParser",
    "CalibrationAlgoType",
    "DataType",
    "DeviceType",
    "DimensionOperation",
    "Dims",
    "Dims2",
    "Dims3",
    "Dims4",
    "DimsExprs",
    "DimsHW",
    "DynamicPluginTensorDesc",
    "ElementWiseOperation",
    "EngineCapability",
    "EngineInspector",
    "ErrorCode",
    "ErrorCodeTRT",
    "FillOperation",
    "GatherMode",
    "IActivationLayer",
    "IAlgorithm",
    "IAlgorithmContext",
    "IAlgorithmIOInfo",
    "IAlgorithmSelector",
    "IAlgorithmVariant",
    "IAssertionLayer",
    "IBuilderConfig",
    "IConcatenationLayer",
    "IConditionLayer",
    "IConstantLayer",
    "IConvolutionLayer",
    "ICudaEngine",
    "IDebugListener",
    "IDeconvolutionLayer",
    "IDequantizeLayer",
    "IDimensionExpr",
    "IEinsumLayer",
    "IElementWiseLayer",
    "IErrorRecorder",
    "IExecutionContext",
    "IExprBuilder",
    "IFillLayer",
    "IFullyConnectedLayer",
    "IGatherLayer",
    "IGpuAllocator",
    "IGridSampleLayer",
    "IHostMemory",
    "IIdentityLayer",
    "IIfConditional",
    "IIfConditionalBoundaryLayer",
    "IIfConditionalInputLayer",
    "IIfConditionalOutputLayer",
    "IInt8Calibrator",
    "IInt8EntropyCalibrator",
    "IInt8EntropyCalibrator2",
    "IInt8LegacyCalibrator",
    "IInt8MinMaxCalibrator",
    "IIteratorLayer",
    "ILRNLayer",
    "ILayer",
    "ILogger",
    "ILoop",
    "ILoopBoundaryLayer",
    "ILoopOutputLayer",
    "IMatrixMultiplyLayer",
    "INMSLayer",
    "INetworkDefinition",
    "INonZeroLayer",
    "IOneHotLayer",
    "IOptimizationProfile",
    "IOutputAllocator",
    "IPaddingLayer",
    "IParametricReLULayer",
    "IPluginCreator",
    "IPluginCreatorInterface",
    "IPluginCreatorV3One",
    "IPluginRegistry",
    "IPluginV2",
    "IPluginV2DynamicExt",
    "IPluginV2Ext",
    "IPluginV2IOExt",
    "IPluginV2Layer",
    "IPluginV3",
    "IPluginV3Layer",
    "IPluginV3OneBuild",
    "IPluginV3OneCore",
    "IPluginV3OneRuntime",
    "IPoolingLayer",
    "IProfiler",
    "IQuantizeLayer",
    "IRNNv2Layer",
    "IRaggedSoftMaxLayer",
    "IRecurrenceLayer",
    "IReduceLayer",
    "IResizeLayer",
    "IScaleLayer",
    "IScatterLayer",
    "ISelectLayer",
    "IShapeLayer",
    "IShuffleLayer",
    "ISliceLayer",
    "ISoftMaxLayer",
    "ITensor",
    "ITimingCache",
    "ITopKLayer",
    "ITripLimitLayer",
    "IUnaryLayer",
    "InterpolationMode",
    "LayerInformationFormat",
    "LayerType",
    "Logger",
    "LoopOutput",
    "MatrixOperation",
    "MemoryPoolType",
    "NetworkDefinitionCreationFlag",
    "OnnxParser",
    "PaddingMode",
    "ParserError",
    "Permutation",
    "PluginCapabilityType",
    "PluginField",
    "PluginFieldCollection",
    "PluginFieldCollection_",
    "PluginFieldType",
    "PluginTensorDesc",
    "PoolingType",
    "PreviewFeature",
    "Profiler",
    "ProfilingVerbosity",
    "QuantizationFlag",
    "RNNDirection",
    "RNNGateType",
    "RNNInputMode",
    "RNNOperation",
    "ReduceOperation",
    "Refitter",
    "ResizeCoordinateTransformation",
    "ResizeMode",
    "ResizeRoundMode",
    "ResizeSelector",
    "Runtime",
    "SampleMode",
    "ScaleMode",
    "ScatterMode",
    "Severity",
    "SliceMode",
    "TacticSource",
    "TensorFormat",
    "TensorIOMode",
    "TensorLocation",
    "TensorRTPhase",
    "TopKOperation",
    "TripLimit",
    "UffParser",
    "UnaryOperation",
    "Weights",
    "WeightsRole",
    "bool",
    "float16",
    "float32",
    "get_nv_onnx_parser_version",
    "get_plugin_registry",
    "init_libnvinfer_plugins",
    "int8",
    "int32",
    "nptype",
    "shutdown_protobuf_library",
    "uint8",
    "volume",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'mlirt.tensorrt' has no attribute {name!r}")
    home, own = _PLACES[name]
    try:
        return getattr(import_module(home), own)
    except ModuleNotFoundError as error:
        raise missing_package(f"mlirt.{name}", error) from error
