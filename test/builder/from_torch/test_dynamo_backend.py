"""`torch.compile(backend="mlirt")`: engines where they can be had, PyTorch between them, other sizes and weights."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mlirt  # noqa: E402
from mlirt.builder.from_torch import dynamo_backend, graph_engines  # noqa: E402
from mlirt.builder.from_torch.dynamo_backend import mlirt_backend  # noqa: E402
from mlirt.errors import InvalidInputError  # noqa: E402

REFERENCE = {"target": "reference"}


class Layers(torch.nn.Module):
    """Layers around an operator that engines do not have, or without it."""

    def __init__(self, spectrum: bool = False) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.second = torch.nn.Linear(3, 2)
        self.spectrum = spectrum

    def forward(self, x: Any) -> Any:
        """Probabilities, and the features."""
        y = self.norm(self.first(x)).relu() + x.shape[0]
        z = torch.fft.rfft(y).abs() if self.spectrum else y[:, :2] * 2
        return self.second(torch.cat([z, y[:, :1]], 1)).sigmoid().softmax(1), y


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The engines that are made during the test."""
    made: list[Any] = []
    first = graph_engines.PartEngine.__init__

    def noted(self: Any, *args: Any) -> None:
        first(self, *args)
        made.append(self.engine)

    monkeypatch.setattr(graph_engines.PartEngine, "__init__", noted)
    return made


def assert_same(compiled: Any, module: Any, count: int) -> None:
    x = torch.randn(count, 4)
    with torch.no_grad():
        for found, wanted in zip(compiled(x), module(x), strict=True):
            assert torch.allclose(found, wanted, atol=1e-5)


def test_whole_graph_is_one_engine(engines: list[Any]) -> None:
    module = Layers().eval()
    assert_same(torch.compile(module, backend=mlirt_backend, options=REFERENCE), module, 5)
    assert len(engines) == 1


def test_operators_without_layers_stay_with_pytorch(engines: list[Any]) -> None:
    module = Layers(spectrum=True).eval()
    assert_same(torch.compile(module, backend=mlirt_backend, options=REFERENCE), module, 5)
    assert len(engines) == 2


def test_small_parts_stay_with_pytorch(engines: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    module = Layers(spectrum=True).eval()
    compiled = torch.compile(module, backend=mlirt_backend, options={**REFERENCE, "min_nodes": 100})
    assert_same(compiled, module, 5)
    assert not engines
    (told,) = [one.getMessage() for one in caplog.records if "0 engines" in one.getMessage()]
    assert "operators without a layer: _fft_r2c" in told
    assert "min_nodes=100" in told


def test_dynamic_graph_is_built_once(engines: list[Any]) -> None:
    module = Layers().eval()
    compiled = torch.compile(module, backend=mlirt_backend, options=REFERENCE, dynamic=True)
    for count in (3, 5, 8):
        assert_same(compiled, module, count)
    assert len(engines) == 1


@pytest.mark.parametrize(("norm_first", "activation"), [(True, "relu"), (False, "gelu")])
def test_encoder_layers_are_engines(norm_first: bool, activation: str, engines: list[Any]) -> None:
    """PyTorch's one operator for a whole layer, with each kind of mask."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.1, activation, batch_first=True, norm_first=norm_first).eval()
    compiled = torch.compile(layer, backend=mlirt_backend, options=REFERENCE, dynamic=True)
    for masks in ((), ("src_mask",), ("src_key_padding_mask",), ("src_mask", "src_key_padding_mask")):
        engines.clear()
        for batch, length in ((3, 5), (2, 7)):
            x, places = torch.randn(batch, length, 8), torch.arange(length)
            every = {
                "src_mask": places[:, None] < places,
                "src_key_padding_mask": (places >= length - 2).repeat(batch, 1),
            }
            given = {name: every[name] for name in masks}
            with torch.no_grad():
                assert torch.allclose(compiled(x, **given), layer(x, **given), atol=1e-5)
        assert len(engines) == 1


def test_weights_that_change_in_place_are_followed(engines: list[Any]) -> None:
    module = Layers().eval()
    compiled = torch.compile(module, backend=mlirt_backend, options=REFERENCE)
    assert_same(compiled, module, 5)
    module.load_state_dict(Layers().state_dict())
    assert_same(compiled, module, 5)
    assert_same(compiled, module, 5)
    assert len(engines) == 2


def test_low_rank_updates_that_count_no_version_are_followed(engines: list[Any]) -> None:
    """As PEFT merges an adapter."""
    module = Layers().eval()
    compiled = torch.compile(module, backend=mlirt_backend, options=REFERENCE)
    assert_same(compiled, module, 5)
    module.first.weight.data += torch.randn(3, 1) @ torch.randn(1, 4)
    assert_same(compiled, module, 5)
    assert len(engines) == 2


def test_gradients_are_refused() -> None:
    compiled = torch.compile(Layers().eval(), backend=mlirt_backend, options=REFERENCE)
    with pytest.raises(InvalidInputError, match="no_grad"):
        compiled(torch.randn(5, 4))


def test_graph_that_cannot_be_exported_stays_with_pytorch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any) -> Any:
        raise dynamo_backend.MlirtError("no")

    monkeypatch.setattr(dynamo_backend, "graph_engines", fails)
    module = Layers().eval()
    with caplog.at_level(logging.WARNING):
        assert_same(torch.compile(module, backend=mlirt_backend, options=REFERENCE), module, 5)
    assert "left to PyTorch: no" in caplog.text


def _giving(result: Any) -> Any:
    def give(*_: Any) -> Any:
        return result

    return give


def test_lengths_that_were_not_traced_are_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def traced_for_others(*_: Any) -> Any:
        raise AssertionError("Guard failed: x.size()[0] >= 6")

    monkeypatch.setattr(dynamo_backend, "graph_engines", _giving(traced_for_others))
    module = Layers().eval()
    assert_same(torch.compile(module, backend=mlirt_backend, options=REFERENCE), module, 5)


def test_back_end_is_registered() -> None:
    if "mlirt" not in torch._dynamo.list_backends():
        pytest.skip("mlirt is not installed with its entry points")
    assert torch._dynamo.lookup_backend("mlirt") is not None


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules_are_engines_where_torchdynamo_captures_them(engines: list[Any], kind: str) -> None:
    module = getattr(torch.nn, kind)(3, 4, batch_first=True).eval()
    compiled = torch.compile(module, backend=mlirt_backend, options=REFERENCE)
    x = torch.randn(2, 5, 3)
    with torch.no_grad():
        with torch._dynamo.config.patch(allow_rnn=True):
            compiled(x)
        found, wanted = compiled(x), module(x)
    assert len(engines) == 1
    assert torch.allclose(found[0], wanted[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_one_engine_serves_all_lengths(engines: list[Any], kind: str) -> None:
    module = getattr(torch.nn, kind)(3, 4, batch_first=True, bidirectional=True).eval()
    compiled = torch.compile(module, backend=mlirt_backend, options=REFERENCE, dynamic=True)
    before = torch._dynamo.config.allow_rnn
    sequences = [torch.randn(*sizes, 3) for sizes in ((6, 5), (2, 8), (9, 7))]
    with torch.no_grad():
        with mlirt.capture_recurrent():
            compiled(sequences[0])
        for x in sequences:
            assert torch.allclose(compiled(x)[0], module(x)[0], atol=1e-5)
    assert len(engines) == 1
    assert torch._dynamo.config.allow_rnn == before


def test_tensors_are_not_asked_for_the_device_of_the_export() -> None:
    class Cast(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.to(torch.float64) + 1

    graph = torch.export.export(Cast(), (torch.ones(2),)).module().graph
    check = torch.ops.aten._assert_tensor_metadata.default
    assert any(node.target is check for node in graph.nodes)
    graph_engines._drop_metadata_checks(graph)  # pyright: ignore[reportPrivateUsage]
    assert not any(node.target is check for node in graph.nodes)
