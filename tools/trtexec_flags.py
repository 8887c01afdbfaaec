"""Flags of trtexec that change nothing here, and those that cannot mean anything here, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.builder.gpu_code import AMPERE_AND_LATER
from mlirt.errors import InvalidInputError, UnsupportedError

# Accepted, so that scripts go on; what is said about it.
_WITHOUT_EFFECT = {
    "noTF32": "float32 is computed as such unless --tf32 is given",
    "persistentCacheRatio": "the device's cache is left to itself",
    "useManagedMemory": "inputs and outputs are copied",
    "exposeDMA": "transfers are in order with the kernels",
    "consistency": "plans are always checked when they are read",
    "versionCompatible": "a plan is read by every version that has its format",
    "excludeLeanRuntime": "a plan holds no runtime",
}
_REFUSED = {
    "uff": "convert the model to ONNX",
    "deploy": "Caffe models are not read; convert the model to ONNX",
    "model": "Caffe models are not read; convert the model to ONNX",
    "output": "an ONNX model names its outputs itself",
    "batch": "the batch is a dimension of the inputs; give it with --shapes",
    "maxBatch": "the batch is a dimension of the inputs; give it with --maxShapes",
    "safe": "there is no safety runtime",
    "restricted": "there is no safety runtime",
}
_LEVELS = {"none": [], "ampere+": [f"--gpu={AMPERE_AND_LATER}"]}
_DLA = ("useDLACore", "layerDeviceTypes")
_NO_DLA = "there is no DLA compiler in this implementation"
_FALLBACK = "--allowGPUFallback"
_UNUSED = "--sparsity=enable has no effect: there are no kernels for sparse weights."


def take_trtexec_flags(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The other arguments, and a line for each flag without effect; raises `UnsupportedError` for what is refused."""
    kept: list[str] = []
    lines: list[str] = []
    for argument in argv:
        name, _, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--"):
            kept.append(argument)
        elif name in _REFUSED:
            raise UnsupportedError(f"--{name} is not supported: {_REFUSED[name]}")
        elif argument == _FALLBACK:
            lines += [] if any(_asks_for_dla(one) for one in argv) else [f"{_FALLBACK} has no effect: {_NO_DLA}."]
        elif name in _DLA:
            if _asks_for_dla(argument) and _FALLBACK not in argv:
                raise UnsupportedError(f"--{name} is not supported: {_NO_DLA}; {_FALLBACK} runs the layers on the GPU")
            lines.append(f"--{name} has no effect: {_NO_DLA}, all layers are on the one device.")
        elif name == "hardwareCompatibilityLevel":
            if value not in _LEVELS:
                raise InvalidInputError(f"--{name}={value}: expected {' or '.join(_LEVELS)}")
            kept += _LEVELS[value]
        elif name in _WITHOUT_EFFECT:
            lines.append(f"--{name} has no effect: {_WITHOUT_EFFECT[name]}.")
        elif name == "sparsity" and value in ("disable", "enable", "force"):
            lines += [_UNUSED] if value == "enable" else []
            kept += [argument] if value == "force" else []
        else:
            kept.append(argument)
    return kept, lines


def _asks_for_dla(argument: str) -> bool:
    """Whether an argument puts all layers, or some of them, on a DLA."""
    name, _, value = argument.removeprefix("--").partition("=")
    return name == "useDLACore" or (name == "layerDeviceTypes" and "DLA" in value.upper())
