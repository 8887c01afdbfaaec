"""Shapes of operators while PyTorch traces them, where its own way to them fixes the length of a sequence.

PyTorch infers what `aten.lstm.input` and its relatives give by computing them step by step: a loop over the sequence,
whose length is a number from then on. What they give has a formula. `aten.max_pool1d` is code that asks for sizes as
numbers; the pooling of two axes, of which one is a single row, asks for none.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table


@contextmanager
def open_lengths() -> Generator[None]:
    """Let the length of a sequence stay what it is, a number or a symbol, while a module is traced."""
    aten = torch.ops.aten
    formulas = {aten.lstm.input: _lstm} | dict.fromkeys(
        (aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _rnn
    )
    composed = {aten.max_pool1d.default: {DispatchKey.CompositeImplicitAutograd: _max_pool1d}}
    kernels = {
        operator: dict.fromkeys(operator.py_kernels, formula) for operator, formula in formulas.items()
    } | composed
    own = {operator: dict(operator.py_kernels) for operator in kernels}
    decompositions = {operator: decomposition_table[operator] for operator in formulas}
    decomposition_table.update(formulas)
    _set_kernels(kernels)
    try:
        yield
    finally:
        decomposition_table.update(decompositions)
        _set_kernels(own)


def _set_kernels(kernels: Mapping[Any, Mapping[Any, Any]]) -> None:
    """What PyTorch calls for operators when it traces, by the keys of its dispatcher."""
    for operator, by_key in kernels.items():
        operator.py_kernels.clear()
        operator.py_kernels.update(by_key)
        operator._dispatch_cache.clear()


def _max_pool1d(
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """[.., length] as [.., 1, length]."""
    rows = [[one, *given] for one, given in ((1, kernel), (1, stride or kernel), (0, padding), (1, dilation))]
    return torch.ops.aten.max_pool2d.default(x.unsqueeze(-2), *rows, ceil_mode).squeeze(-2)


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
