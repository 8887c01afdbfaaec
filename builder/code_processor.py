"""The processor that code is made for, as a build tells the processes that compile."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Self

from mlirt.systems import architecture_of

_VARIABLE = "MLIRT_CODE_FOR"


@dataclass(frozen=True)
class CodeProcessor:
    """LLVM's names of a machine, of the least processor of its architecture, and of features as it takes them."""

    triple: str
    cpu: str
    features: tuple[str, ...]

    @property
    def architecture(self) -> str:
        return architecture_of(self.triple)

    def variables(self) -> dict[str, str]:
        """What tells a process to make code for it."""
        return {_VARIABLE: json.dumps([self.triple, self.cpu, self.features])}

    @classmethod
    def told(cls) -> Self | None:
        """The one that this process was told; None where nobody said."""
        text = os.environ.get(_VARIABLE)
        if text is None:
            return None
        triple, cpu, features = json.loads(text)
        return cls(triple, cpu, tuple(features))
