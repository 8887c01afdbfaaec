"""`mlirt.compile` of modules and exported programs: called like the module, static and dynamic, refitted, refused."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import Function, assert_same, check  # noqa: E402

import mlirt  # noqa: E402
from mlirt.errors import InvalidInputError, UnsupportedOperatorsError  # noqa: E402


class Layers(torch.nn.Module):
    """Products, a normalisation and a recurrent layer, with results in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.gru = torch.nn.GRU(16, 4, batch_first=True)

    def forward(self, x: Any, scale: Any = None) -> dict[str, Any]:
        """States of three steps, and the sum of the features."""
        features = torch.relu(self.norm(self.first(x)))
        states, last = self.gru(features.unsqueeze(1).expand(-1, 3, -1))
        return {"states": states if scale is None else states * scale, "rest": (last, features.sum())}


@pytest.fixture
def module() -> Any:
    torch.manual_seed(0)
    made = Layers().eval()
    made.norm.running_mean.normal_()
    return made


X = torch.randn(4, 8)
BATCH = torch.export.Dim("batch", min=1, max=64)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_dimensions_have_the_names_of_the_caller(module: Any, target: str) -> None:
    engine: Any = mlirt.compile(module, (X,), target=target, dynamic_shapes={"x": {0: BATCH}})
    assert [str(one) for one in engine.inputs] == ["x float32[batch, 8]"]
    assert str(engine.outputs[0]) == "states float32[batch, 3, 4]"
    for count in (1, 4, 7):
        assert_same(engine, module, (torch.randn(count, 8),))


def test_program_is_compiled_without_example_inputs(module: Any) -> None:
    engine: Any = mlirt.compile(torch.export.export(module, (X,)), "cpu")
    assert_same(engine, module, (X,))


def test_keywords_are_inputs_by_name(module: Any) -> None:
    engine: Any = mlirt.compile(module, (X,), target="reference", example_keywords={"scale": torch.ones(1)})
    found = engine(X, scale=torch.full((1,), 2.0))
    with torch.no_grad():
        assert torch.allclose(found["states"], module(X)["states"] * 2, atol=1e-5)
    with pytest.raises(InvalidInputError, match="exported for arguments"):
        engine(X)


class ReadFromData(torch.nn.Module):
    """A number that is taken out of a tensor."""

    def forward(self, x: Any) -> Any:
        """The input times its sum."""
        return x * x.sum().item()


def test_number_from_data_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperatorsError, match=r"mul.Tensor .aten. .*a number that only a run tells"):
        mlirt.compile(ReadFromData(), (X,), target="reference")


class Masked(torch.nn.Module):
    """A number and a tensor that may be left out."""

    def forward(self, x: Any, mask: Any = None, scale: float = 2.0) -> Any:
        """The scaled input, zero outside of the mask."""
        return x * scale if mask is None else (x * scale).masked_fill(mask, 0.0)


@pytest.mark.parametrize("arguments", [(None, 4.0), (X > 0, 3.0), (None, 3)], ids=["number", "tensor", "type"])
def test_what_is_built_in_is_no_other_at_a_call(arguments: tuple[Any, ...]) -> None:
    engine: Any = mlirt.compile(Masked(), (X, None, 3.0), target="reference")
    assert_same(engine, Masked(), (X, None, 3.0))
    with pytest.raises(InvalidInputError, match=r"argument [12] is .*, which is built in"):
        engine(X, *arguments)


def test_layers_have_the_paths_of_their_modules(module: Any) -> None:
    engine: Any = mlirt.compile(module, (X,), target="reference")
    names = " ".join(str(layer["name"]) for layer in engine.layers)
    assert "first.linear" in names
    assert "gru.gru" in names


def test_saved_plan_runs_without_the_module(module: Any, tmp_path: Path) -> None:
    mlirt.compile(module, (X,), target="cpu").save(tmp_path / "layers.plan")
    found = mlirt.load(tmp_path / "layers.plan").run({"x": X.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found["states"], module(X)["states"].numpy(), atol=1e-5)


def test_refit_follows_load_state_dict(module: Any) -> None:
    engine: Any = mlirt.compile(module, (X,), target="cpu", refittable=True)
    other = Layers().eval()
    other.norm.running_var.uniform_(0.5, 2)
    module.load_state_dict(other.state_dict())
    with torch.no_grad():
        assert not torch.allclose(engine(X)["states"], module(X)["states"], atol=1e-3)
    assert_same(engine.refit(module), module, (X,))
    assert_same(engine.refit(other.state_dict()), module, (X,))


def test_an_adapter_is_merged_into_the_weights() -> None:
    """Demand 20: LoRA's factors, under PEFT's names."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()
    engine: Any = mlirt.compile(net, (torch.randn(2, 8),), target="cpu", refittable=True)
    a, b, x = torch.randn(2, 6), torch.randn(3, 2), torch.randn(2, 8)
    adapter = {"base_model.model.2.lora_A.weight": a, "base_model.model.2.lora_B.weight": b}
    other = engine.refit(net, lora=adapter, lora_scale=0.5)
    with torch.no_grad():
        before = net(x)
        net[2].weight += 0.5 * b @ a
    assert_same(other, net, (x,))
    assert torch.allclose(engine(x), before, atol=1e-5)
    with pytest.raises(InvalidInputError, match=r"there is no weight '5\.weight'"):
        engine.refit(net, lora={"5.lora_A.weight": a, "5.lora_B.weight": b})


def test_weights_are_not_copied() -> None:
    from mlirt.frontend.torch.elements import array_of

    weight = torch.nn.Linear(3, 4).weight
    assert array_of(weight).ctypes.data == weight.data_ptr()
    half = torch.zeros(3, dtype=torch.bfloat16)
    assert array_of(half).dtype.name == "bfloat16"
    assert array_of(half).ctypes.data == half.data_ptr()


def test_results_of_several_types_keep_them() -> None:
    check(lambda x: (x.argmax(1), x > 0, x.to(torch.int32), x.double()), X, target="cpu")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_elements_of_other_widths(dtype: str) -> None:
    kind = getattr(torch, dtype)
    layer = torch.nn.Linear(8, 4).to(kind)
    check(layer, X.to(kind), target="cpu", tolerance=1e-5 if dtype == "float64" else 1e-2)


def test_calls_for_gradients_are_refused(module: Any) -> None:
    engine: Any = mlirt.compile(module, (X,), target="reference")
    with pytest.raises(InvalidInputError, match="no_grad"):
        engine(X.clone().requires_grad_())


def test_module_in_training_mode_is_compiled_for_inference() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Dropout(0.5))
    with pytest.warns(UserWarning, match="training mode"):
        engine: Any = mlirt.compile(module, (X,), target="reference")
    assert module.training
    assert_same(engine, module.eval(), (X,))


def test_all_that_cannot_be_taken_is_told_at_once() -> None:
    def function(x: Any) -> Any:
        spectrum = torch.fft.rfft(x).real + torch.fft.rfft(x * 2).real
        return torch.special.bessel_j0(spectrum) + 1

    with pytest.raises(UnsupportedOperatorsError) as caught:
        mlirt.compile(Function(function), (X,), target="reference")
    table = {refusal.operator: refusal for refusal in caught.value.refusals}
    assert table["_fft_r2c.default"].count == 2
    assert table["_fft_r2c.default"].domain == "aten"
    assert table["_fft_r2c.default"].why
    assert "_fft_r2c.default (aten) | 2 |" in str(caught.value)


def test_an_operator_with_effects_is_told_by_its_name() -> None:
    with pytest.raises(UnsupportedOperatorsError, match="linalg_inv_ex"):
        mlirt.compile(Function(torch.linalg.inv), (torch.eye(4),), target="reference")


def test_example_inputs_are_needed(module: Any) -> None:
    with pytest.raises(InvalidInputError, match="example inputs"):
        mlirt.compile(module)
    with pytest.raises(InvalidInputError, match="already"):
        mlirt.compile(torch.export.export(module, (X,)), (X,))


def test_int8_by_calibration(module: Any) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
    program = torch.export.export(layers, (torch.randn(16, 8),))
    samples = torch.randn(64, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mlirt.calibrate(program, {"input": samples.numpy()}, batch_size=16, progress=False)
        engine: Any = mlirt.compile(program, target="cpu", precision="int8", calibration=found)
    x = samples[:16]
    with torch.no_grad():
        wanted = layers(x)
    assert float((engine(x) - wanted).abs().max()) < 0.05 * float(wanted.abs().max())


class Asked(Exception):
    """What a build would have been asked for."""


@pytest.mark.parametrize("precision", [None, "fp32"])
@pytest.mark.parametrize("exports", [False, True])
def test_a_module_in_half_precision_is_computed_in_it(
    exports: bool, precision: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless another precision is asked for; one that has float32 weights as well is not."""

    def build(network: object, config: mlirt.BuildConfig) -> None:
        raise Asked(config.precision)

    monkeypatch.setattr("mlirt.builder.model_engine.build_engine", build)
    halves = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).half()
    mixed = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU())
    for module, x, wanted in ((halves, torch.zeros(4, 32).half(), "fp16"), (mixed, torch.zeros(4, 32), "fp32")):
        given = (torch.export.export(module, (x,)),) if exports else (module, (x,))
        with pytest.raises(Asked, match=f"^{precision or wanted}$"):
            mlirt.compile(*given, precision=precision)
