"""Recurrent modules in graphs of TorchDynamo, with sequences of any length, where the caller asks for it."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mlirt.errors import MissingPackageError


@contextmanager
def capture_recurrent() -> Generator[None]:
    """`with mlirt.capture_recurrent(): compiled(x)`: `LSTM`, `GRU` and `RNN` come to the back end, one for all lengths.

    TorchDynamo captures them only where its setting `allow_rnn` is on, and infers what `GRU` and `RNN` give step by
    step, so that their length is fixed. Both are otherwise while the block runs, in the whole process, for calls that
    capture; calls of what has been captured do not need it. Without PyTorch that is a `MissingPackageError`.
    """
    try:
        import torch._dynamo

        from mlirt.frontend.torch.open_lengths import open_lengths
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "mlirt.capture_recurrent needs PyTorch, which is not here: `pip install 'mlirt[torch]'` brings it",
            name=error.name,
        ) from error
    with torch._dynamo.config.patch(allow_rnn=True), open_lengths():
        yield
