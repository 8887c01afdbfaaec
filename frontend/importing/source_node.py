"""What functions that importers share need to know of a node of the imported graph: its name, and how to refuse it."""

from __future__ import annotations

from typing import Protocol

from mlirt.errors import InvalidModelError, UnsupportedError


class SourceNode(Protocol):
    """A node of an ONNX graph or of an exported PyTorch program."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str:
        """How messages call the node."""
        ...

    def invalid(self, message: str) -> InvalidModelError:
        """The error for a node that contradicts the specification of its operator."""
        ...

    def unsupported(self, why: str) -> UnsupportedError:
        """The error for a node whose operator is known but not in this form."""
        ...
