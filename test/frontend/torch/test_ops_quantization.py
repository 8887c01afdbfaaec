"""Quantised programs: torch.export's quantisation and torchao's, against PyTorch to a step of the scale."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

pytest.importorskip("torch.ao.quantization.fx._decomposed")  # its import defines the operators
from torch_checks import check  # noqa: E402

import mlirt  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.frontend.torch.exported_network import exported_network  # noqa: E402

nn: Any = torch.nn
Q: Any = torch.ops.quantized_decomposed
torch.manual_seed(0)
X = torch.randn(3, 4, 5) * 3
SCALES = torch.rand(4) * 0.1 + 0.01
ZEROS = torch.tensor([3, -7, 0, 100])


def _per_tensor(low: int, high: int, zero: int, dtype: Any) -> Callable[[Any], Any]:
    def both(x: Any) -> Any:
        q = Q.quantize_per_tensor(x, 0.0371, zero, low, high, dtype)
        return q, Q.dequantize_per_tensor(q, 0.0371, zero, low, high, dtype)

    return both


def _per_channel(zeros: Any, low: int = -128) -> Callable[[Any], Any]:
    def both(x: Any) -> Any:
        q = Q.quantize_per_channel(x, SCALES, zeros, 1, low, 127, torch.int8)
        return q, Q.dequantize_per_channel(q, SCALES, zeros, 1, low, 127, torch.int8)

    return both


def _chosen(x: Any) -> Any:
    scale, zero = Q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
    q = Q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    return scale, zero, q, Q.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "int8": _per_tensor(-128, 127, -5, torch.int8),
    "uint8": _per_tensor(0, 255, 119, torch.uint8),
    "seven bits": _per_tensor(0, 127, 60, torch.uint8),
    "symmetric": _per_tensor(-127, 127, 0, torch.int8),
    "int16": _per_tensor(-32768, 32767, 12, torch.int16),
    "channels": _per_channel(ZEROS),
    "channels without zero points": _per_channel(torch.zeros(4, dtype=torch.int64), -127),
    "chosen by the run": _chosen,
    "chosen of positive numbers": lambda x: _chosen(x.abs() + 1),
    "symmetric, chosen": lambda x: Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-5, torch.int8),
    "product of int8": lambda x: torch._int_mm(
        (x.reshape(-1, 20)[[0, 1, 2] * 6] * 9).to(torch.int8), torch.ones(20, 8, dtype=torch.int8)
    ),
}


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, target: str) -> None:
    check(OPERATORS[name], X, target=target)


class Convolutional(nn.Module):
    """Convolutions with a residual sum, pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.second, self.last = nn.Conv2d(16, 16, 3, padding=1), nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        """[batch, 3, height, width]."""
        y = self.norm(self.first(x)).relu()
        return self.last((self.second(y) + y).relu().mean((2, 3)))


class Perceptron(nn.Module):
    """Two linear layers, of the sizes that kernels of torchao demand."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 32)

    def forward(self, x: Any) -> Any:
        """[batch, 64]."""
        return self.down(nn.functional.gelu(self.up(x)))


def _quantizers() -> dict[str, Callable[[], Any]]:
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    def of_xnnpack(**options: Any) -> Any:
        settings = xnnpack.get_symmetric_quantization_config(**options)
        return xnnpack.XNNPACKQuantizer().set_global(settings)

    return {
        "bytes of activations": lambda: x86.X86InductorQuantizer().set_global(
            x86.get_default_x86_inductor_quantization_config()
        ),
        "symmetric": lambda: of_xnnpack(is_per_channel=True),
        "one scale for weights": lambda: of_xnnpack(is_per_channel=False),
        "scales found by the run": lambda: of_xnnpack(is_per_channel=True, is_dynamic=True),
    }


def _layers(program: Any) -> collections.Counter[str]:
    module = exported_network(program).import_into(RtContext(), keeps_weights=False)
    return collections.Counter(op.name for op in module.walk())


def _as_quantized(module: Any, samples: Any, quantizer: Any) -> Any:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    batch = torch.export.Dim("batch", min=1, max=32)
    shapes = ({0: batch},)
    prepared = prepare_pt2e(torch.export.export(module, (samples,), dynamic_shapes=shapes).module(), quantizer)
    prepared(samples)
    return torch.export.export(convert_pt2e(prepared), (samples,), dynamic_shapes=shapes)


def _steps_off(engine: Any, program: Any, x: Any) -> float:
    """The largest difference, in steps of the results' scale, or of 255 over their range where they have none."""
    with torch.no_grad():
        wanted, found = program.module()(x), engine(x)
    (result,) = next(node for node in program.graph.nodes if node.op == "output").args[0]
    is_quantised = "dequantize_per_tensor.default" in str(result.target)
    step = result.args[1] if is_quantised else float(wanted.max() - wanted.min()) / 255
    return float((found - wanted).abs().max()) / step


@pytest.mark.parametrize(
    "kind", ["bytes of activations", "symmetric", "one scale for weights", "scales found by the run"]
)
@pytest.mark.parametrize("make", [Convolutional, Perceptron])
def test_exported_quantisation(make: Callable[[], Any], kind: str) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")
    torch.manual_seed(1)
    is_image = make is Convolutional
    samples, other = (torch.randn(n, 3, 12, 12) if is_image else torch.randn(n, 64) for n in (8, 5))
    program = _as_quantized(make().eval(), samples, _quantizers()[kind]())
    found = _layers(program)
    assert found["trt.quantize"] >= 1
    assert found["trt.dequantize"] >= 2
    engine = mlirt.compile(program, target="reference")
    assert _steps_off(engine, program, samples) <= 1.001  # of float32, in which steps are multiplied
    assert _steps_off(engine, program, other) <= 1.001


def test_exported_quantisation_on_a_cpu() -> None:
    pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")
    torch.manual_seed(1)
    samples = torch.randn(8, 3, 12, 12)
    program = _as_quantized(Convolutional().eval(), samples, _quantizers()["bytes of activations"]())
    assert _steps_off(mlirt.compile(program, target="cpu"), program, samples) <= 1.001


@pytest.mark.parametrize("kind", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
def test_modules_of_torchao(kind: str) -> None:
    torchao = pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")
    torch.manual_seed(1)
    module, x = Perceptron().eval(), torch.randn(24, 64)
    torchao.quantization.quantize_(module, getattr(torchao.quantization, kind)())
    program = torch.export.export(module, (x,))
    if "Activation" in kind:
        assert _layers(program)["trt.quantize"] == 2
    engine = mlirt.compile(module, (x,), target="reference")
    assert _steps_off(engine, program, x) <= 1.001


class Inverted(nn.Module):
    """An inverted residual of MobileNetV2: up to more channels, a convolution of each alone, down, and the sum."""

    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """[batch, width, height, width]."""
        return x + self.body(x) if self.stride == 1 else self.body(x)


def _mobile() -> Any:
    first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
    blocks = [Inverted(16, 48, stride) for stride in (1, 2, 1, 2, 1)]
    return nn.Sequential(first, *blocks, nn.Conv2d(16, 64, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))  # fmt: skip


class Encoder(nn.Module):
    """Two layers of a transformer without its one operator, whose linear layers quantisers find."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(64), "qkv": nn.Linear(64, 192), "out": nn.Linear(64, 64),
                    "norm2": nn.LayerNorm(64), "up": nn.Linear(64, 128), "down": nn.Linear(128, 64),
                }
            )
            for _ in range(2)
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """[batch, length, 64]."""
        for part in self.parts:
            queries, keys, values = part["qkv"](part["norm1"](x)).unflatten(2, (3, 4, 16)).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(queries, keys, values)
            x = x + part["out"](mixed.transpose(1, 2).flatten(2))
            x = x + part["down"](nn.functional.gelu(part["up"](part["norm2"](x))))
        return x


def _assert_as_good_as_pytorch(engine: Any, quantised: Any, module: Any, x: Any) -> None:
    """Roundings of a deep network part by steps: the engine is as near to the float network as PyTorch's result is, and
    as near to that as PyTorch comes for inputs that are off by a few units in the last place.
    """
    with torch.no_grad():
        wanted, theirs, ours, shaken = module(x), quantised(x), engine(x), quantised(x * (1 + 1e-6))
    loss = _root_mean_square(theirs - wanted)
    assert 0 < loss < 0.3 * float(wanted.std())
    assert _root_mean_square(ours - wanted) < 1.1 * loss
    assert _root_mean_square(ours - theirs) < max(0.5 * loss, 1.2 * _root_mean_square(shaken - theirs))


def _root_mean_square(x: Any) -> float:
    return float(x.pow(2).mean().sqrt())


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("make", [_mobile, Encoder])
def test_whole_network_of_exported_quantisation(make: Callable[[], Any], target: str) -> None:
    """A MobileNet of five blocks and a transformer of two: all with weights read int8, with a dynamic batch."""
    pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")
    torch.manual_seed(2)
    shape = (3, 24, 24) if make is _mobile else (12, 64)
    module, samples, other = make(), torch.randn(16, *shape), torch.randn(5, *shape)
    module(samples)  # the statistics of batch normalisation are those of the samples
    module.eval()
    program = _as_quantized(module, samples, _quantizers()["bytes of activations"]())
    found = _layers(program)
    with_weights = sum(isinstance(part, nn.Conv2d | nn.Linear) for part in module.modules())
    assert found["trt.dequantize"] >= 2 * with_weights  # of what it reads, and of its weights
    assert found["trt.quantize"] >= with_weights / 2
    engine = mlirt.compile(program, target=target)
    for x in (samples, other):
        _assert_as_good_as_pytorch(engine, program.module(), module, x)


@pytest.mark.parametrize("kind", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
def test_whole_network_of_torchao(kind: str) -> None:
    torchao = pytest.importorskip("torchao", reason="torchao is not installed: make test-torch")
    torch.manual_seed(2)
    module, x = Encoder().eval(), torch.randn(4, 12, 64)
    plain = copy.deepcopy(module)
    torchao.quantization.quantize_(module, getattr(torchao.quantization, kind)())
    found = _layers(torch.export.export(module, (x,)))
    assert found["trt.quantize"] == (8 if "Activation" in kind else 0)
    _assert_as_good_as_pytorch(mlirt.compile(module, (x,), target="cpu"), module, plain, x)


def test_blocks_of_torchao() -> None:
    pytest.importorskip("torchao.quantization", reason="torchao is not installed: make test-torch")
    scales, x = torch.rand(6, 4) * 0.1 + 0.05, torch.randn(6, 32)

    def both(x: Any) -> Any:
        zeros = torch.full((6, 4), 3)
        q = torch.ops.torchao.quantize_affine(x, [1, 8], scales, zeros, torch.int8, -8, 7)
        return q, torch.ops.torchao.dequantize_affine(q, [1, 8], scales, zeros, torch.int8, -8, 7)

    check(both, x)
