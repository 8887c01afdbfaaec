"""Refusals that do not depend on what the network is read from."""

from __future__ import annotations

from mlirt.errors import UnsupportedError


class ValueNeededError(UnsupportedError):
    """A value that shapes the network is known only at run time; `inputs` are the graph inputs that would determine it.
    """

    def __init__(self, message: str, inputs: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.inputs = inputs
