"""Shapes of recurrent operators while PyTorch traces them, as its own way to them fixes the length of the sequence.

PyTorch infers what `aten.lstm.input` and its relatives give by computing them step by step: a loop over the sequence,
whose length is a number from then on. What they give has a formula.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch._decomp import decomposition_table


@contextmanager
def open_lengths() -> Generator[None]:
    """Let the length of a sequence stay what it is, a number or a symbol, while a module is traced."""
    aten = torch.ops.aten
    formulas = {aten.lstm.input: _lstm} | dict.fromkeys(
        (aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _rnn
    )
    own = {operator: (decomposition_table[operator], dict(operator.py_kernels)) for operator in formulas}
    for operator, formula in formulas.items():
        _set(operator, formula, dict.fromkeys(operator.py_kernels, formula))
    try:
        yield
    finally:
        for operator, (decomposition, kernels) in own.items():
            _set(operator, decomposition, kernels)


def _set(operator: Any, decomposition: Any, kernels: Mapping[Any, Any]) -> None:
    """What PyTorch calls for an operator when it traces: for shapes, and by the key of its dispatcher."""
    decomposition_table[operator] = decomposition
    operator.py_kernels.update(kernels)
    operator._dispatch_cache.clear()


def _lstm(x: Any, states: Any, _: Any, *settings: Any) -> tuple[Any, ...]:
    return _outputs(x, states[0].shape[-1], *settings), *(state.new_empty(state.shape) for state in states)


def _rnn(x: Any, state: Any, _: Any, *settings: Any) -> tuple[Any, ...]:
    return _outputs(x, state.shape[-1], *settings), state.new_empty(state.shape)


def _outputs(
    x: Any, width: Any, biases: bool, layers: int, rate: float, train: bool, bidirectional: bool, batch_first: bool
) -> Any:
    """[length, batch, directions x width], or batch first."""
    del biases, layers, rate, train, batch_first  # they change no shape
    return x.new_empty((*x.shape[:-1], width * (2 if bidirectional else 1)))
