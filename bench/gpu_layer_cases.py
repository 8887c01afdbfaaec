"""Single products and convolutions: the network of each alone, what PyTorch does, and what prototypes reached.

Prototypes are kernels that were written by hand for one shape each, with the same technology; theirs is the ratio of
the peer's time to their own.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter

_CHAIN = 4  # convolutions after one another: a single one might not be worth the memory order that suits them


@dataclass(frozen=True)
class Kind:
    """A type of factors and one of results, the precision to build with, and PyTorch's names for all that."""

    factor: int
    result: int
    precision: str
    torch_type: str


_FLOAT, _HALF, _BFLOAT = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16
KINDS = {
    "fp16": Kind(_HALF, _HALF, "fp16", "half"),
    "bf16": Kind(_BFLOAT, _BFLOAT, "fp16", "bfloat16"),
    "tf32": Kind(_FLOAT, _FLOAT, "tf32", "float32"),
    "fp32": Kind(_FLOAT, _FLOAT, "fp32", "float32"),
    "int8": Kind(onnx.TensorProto.INT8, onnx.TensorProto.INT32, "fp32", "int8"),
    "fp8": Kind(onnx.TensorProto.FLOAT8E4M3FN, _BFLOAT, "fp32", "float8_e4m3fn"),
}


@dataclass(frozen=True)
class Layer:
    """A layer by its name; `prototype` is the ratio that was reached by hand, None where nobody tried."""

    name: str
    precision: str
    model: Callable[[], onnx.ModelProto]
    peer: Callable[[], Callable[[], object]]
    operations: float
    prototype: float | None


def product(rows: int, columns: int, depth: int, prototype: float | None = None, kind: str = "fp16") -> Layer:
    """[rows, depth] times a known [depth, columns]."""
    about = KINDS[kind]

    def model() -> onnx.ModelProto:
        write = GraphWriter(0)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(about.factor)
        some = np.random.default_rng(0).standard_normal(min(depth * columns, 1 << 20), np.float32)
        weights = np.resize(some * np.float32(16 if kind == "int8" else 0.02), (depth, columns)).astype(dtype)
        known = write.constant("w", weights)
        if kind == "fp8":
            factors = [
                write.node("DequantizeLinear", [one, write.constant("one", np.ones((), np.float32))], f"{one}_")
                for one in ("x", known)
            ]
            write.node("Cast", [write.node("MatMul", factors, "product")], "y", to=about.result)
        else:
            write.node("MatMulInteger" if kind == "int8" else "MatMul", ["x", known], "y")
        given, made = ("x", about.factor, (rows, depth)), ("y", about.result, (rows, columns))
        inputs, outputs = ([onnx.helper.make_tensor_value_info(*one)] for one in (given, made))
        return write.model("product", inputs, outputs)

    def peer() -> Callable[[], object]:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        shapes = (rows, depth), (columns, depth)
        left, right = (_random(shape, about.torch_type) for shape in shapes)
        if kind == "fp8":
            scale = torch.ones((), device="cuda")
            settings = {"scale_a": scale, "scale_b": scale, "out_dtype": torch.bfloat16, "use_fast_accum": True}
            return lambda: torch._scaled_mm(left, right.T, **settings)
        multiply = torch._int_mm if kind == "int8" else torch.mm
        return lambda: multiply(left, right.T)

    name = f"{rows}x{columns}x{depth}" + f" {kind}" * (kind != "fp16")
    return Layer(name, about.precision, model, peer, 2.0 * rows * columns * depth, prototype)


def convolution(channels: int, size: int, batch: int, prototype: float | None = None, kind: str = "fp16") -> Layer:
    """A 3 x 3 convolution that keeps the size, channels last for the peer."""
    shape, window = (batch, channels, size, size), (channels, channels, 3, 3)

    def model() -> onnx.ModelProto:
        write, x = GraphWriter(0), "x"
        for number in range(_CHAIN):
            name = "y" if number == _CHAIN - 1 else f"x{number}"
            x = write.node("Conv", [x, write.normal(f"w{number}", window, 0.02)], name, pads=[1, 1, 1, 1])
        inputs, outputs = ([onnx.helper.make_tensor_value_info(one, _FLOAT, shape)] for one in "xy")
        return write.model("convolution", inputs, outputs)

    def peer() -> Callable[[], object]:
        import torch

        torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, kind == "tf32"
        element = KINDS[kind].torch_type
        image, kernel = (_random(one, element).to(memory_format=torch.channels_last) for one in (shape, window))
        return lambda: torch.nn.functional.conv2d(image, kernel, None, 1, 1)

    name = f"conv {channels}ch {size}x{size} b{batch}" + f" {kind}" * (kind != "fp16")
    return Layer(name, KINDS[kind].precision, model, peer, 2.0 * np.prod(shape) * channels * 9, prototype)


def _random(shape: tuple[int, ...], torch_type: str) -> Any:
    import torch

    if torch_type == "int8":
        return torch.randint(-50, 50, shape, device="cuda", dtype=torch.int8)
    if torch_type == "float8_e4m3fn":
        return torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)
    return torch.randn(shape, device="cuda", dtype=getattr(torch, torch_type))


LAYERS = (
    product(4096, 4096, 4096, 0.97),
    product(2048, 2048, 2048, 0.99),
    product(128, 768, 768, 0.97),
    product(128, 3072, 768, 0.99),
    product(128, 768, 3072, 1.19),
    product(512, 768, 768, 0.96),
    product(512, 3072, 768, 0.99),
    product(512, 768, 3072, 0.93),
    product(3136, 256, 64, 0.98),
    product(3136, 64, 256, 1.01),
    product(784, 512, 128, 0.96),
    product(196, 1024, 256, 1.05),
    product(49, 512, 2048, 1.33),
    product(12544, 512, 128, 0.99),
    product(12544, 128, 512, 1.03),
    product(4096, 3072, 768),
    product(4096, 768, 3072),
    convolution(64, 56, 1, 1.59),
    convolution(128, 28, 1, 1.81),
    convolution(256, 14, 1, 1.79),
    convolution(512, 7, 1, 2.52),
    convolution(64, 56, 32, 1.18),
    convolution(128, 28, 32, 1.19),
    convolution(256, 14, 32, 1.21),
    convolution(512, 7, 32, 1.14),
    convolution(64, 56, 1, kind="tf32"),
    convolution(256, 14, 1, kind="tf32"),
    convolution(64, 56, 32, kind="tf32"),
    convolution(256, 14, 32, kind="tf32"),
    convolution(64, 56, 1, kind="fp32"),
    convolution(256, 14, 1, kind="fp32"),
    convolution(64, 56, 32, kind="fp32"),
    convolution(256, 14, 32, kind="fp32"),
    product(4096, 4096, 4096, kind="bf16"),
    product(4096, 4096, 4096, 1.69, "int8"),
    product(512, 3072, 768, 1.25, "int8"),
    product(512, 768, 3072, 0.81, "int8"),
    product(4096, 4096, 4096, kind="fp8"),
    product(512, 3072, 768, kind="fp8"),
    product(512, 768, 3072, kind="fp8"),
    product(4096, 4096, 4096, 0.92, "tf32"),
    product(512, 3072, 768, 1.17, "tf32"),
    product(512, 768, 3072, 0.44, "tf32"),
    product(4096, 4096, 4096, 0.84, "fp32"),
    product(8192, 8192, 8192, 1.03),
)
