"""The IR after each phase as files that run on their own: one text per phase, one file with the weights of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from mlirt.atomic_file import write_atomically
from mlirt.dialects.weights import WeightsAttr
from mlirt.dialects.weights_file import FOLDER_WEIGHTS, save_weights, weights_in
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import Phase


@dataclass
class PhaseDumps:
    """A folder of dumps, with `locations` if wanted; `weights` are those that the texts written so far name."""

    folder: Path
    target: str = "cpu"
    locations: bool = False
    weights: dict[str, WeightsAttr] = field(default_factory=dict[str, WeightsAttr])

    def write(self, module: ModuleOp, number: int, phase: Phase, specs: Sequence[str]) -> None:
        """Write the text of one phase, under a comment with its purpose and its passes."""
        from mlirt.dialects.xdsl_compat import module_text

        head = f"// phase {phase.name}: {phase.purpose}\n// passes: {','.join(specs)}\n// target: {self.target}\n"
        text = head + module_text(module, debuginfo=self.locations)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / f"{number:02}-{phase.name}.mlir", [text.encode()])
        except OSError as error:
            raise InvalidInputError(f"cannot write the phases to {self.folder}: {error.strerror}") from error
        self.weights |= weights_in(module)

    def write_weights(self, ctx: Context) -> None:
        """Write the weights, once; whoever reads one of the texts finds them beside it."""
        if self.weights:
            save_weights(self.weights, ctx, self.folder / FOLDER_WEIGHTS)
