"""The processor that code is made for, as a build tells the processes that compile."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Self

from mlirt.systems import architecture_of

_VARIABLE = "MLIRT_CODE_FOR"
_SCALABLE_BITS = {"+sve256": 256}
"""The width of vector registers whose instructions leave it open, by the feature that says it: no name of LLVM's."""


@dataclass(frozen=True)
class CodeProcessor:
    """LLVM's names of a machine, of the least processor of its architecture, and features, most of them as LLVM takes
    them.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]

    @property
    def architecture(self) -> str:
        return architecture_of(self.triple)

    @property
    def llvm_features(self) -> str:
        """The features that LLVM knows, as it takes them."""
        return ",".join(name for name in self.features if name not in _SCALABLE_BITS)

    @property
    def scalable_bits(self) -> int:
        """How wide the vector registers are whose instructions leave it open; 0 where there are none."""
        return next((bits for name, bits in _SCALABLE_BITS.items() if name in self.features), 0)

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
