"""Recurrent layers of one or more layers and directions."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import assert_same, check  # noqa: E402

nn: Any = torch.nn
torch.manual_seed(0)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "lstm": (nn.LSTM(6, 7, 2, batch_first=True, bidirectional=True), V),
    "gru": (nn.GRU(6, 7, 2), V),
    "rnn": (nn.RNN(6, 7, nonlinearity="relu", bias=False), V),
    "states": (nn.LSTM(6, 7), V, (torch.randn(1, 5, 7), torch.randn(1, 5, 7))),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_dynamic_length_stays_one(kind: str) -> None:
    module = getattr(nn, kind)(6, 7, 2, batch_first=True, bidirectional=True).eval()
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=64)
    engine = check(module, V, dynamic_shapes=({0: batch, 1: length},))
    for sizes in ((3, 9), (2, 31)):
        assert_same(engine, module, (torch.randn(*sizes, 6),))


def test_pytorch_has_its_own_formulas_afterwards() -> None:
    operator = torch.ops.aten.lstm.input
    before = torch._decomp.decomposition_table[operator], dict(operator.py_kernels)
    check(nn.LSTM(6, 7), V)
    assert before == (torch._decomp.decomposition_table[operator], dict(operator.py_kernels))
