"""Brings the code blocks of a hand-written page up to date: each says in a comment above it what it shows.

<!-- excerpt fusion: fused.convolution %image | fused.window -->    ops of a stage of the small network
<!-- run -->                                                        a console block: commands and what they print
<!-- run: numbers vary -->                                          the same; times and addresses may differ
<!-- file: relu.mlir -->                                            a file that the commands of the page read
<!-- python -->                                                     statements that run, one after the other
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mlirt.tools.documentation.console import Console
from mlirt.tools.documentation.excerpt import excerpt
from mlirt.tools.documentation.network_stages import NetworkStages

_BLOCK = re.compile(
    r"^<!-- (?P<kind>excerpt|run|file|python)(?P<what>[^\n]*?) -->\n```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?%?")


@dataclass
class LivingPage:
    """The text of a page, and what its blocks show; `small.onnx` is there for the commands."""

    text: str
    root: Path
    stages: NetworkStages = field(init=False)

    def __post_init__(self) -> None:
        self.stages = NetworkStages(self.root / "examples" / "small_network.py")

    def refreshed(self) -> str:
        """The page with every block as it is today."""
        with tempfile.TemporaryDirectory() as folder:
            console = Console(Path(folder), self.root)
            return _BLOCK.sub(lambda block: self._refreshed_block(block, console), self.text)

    def _refreshed_block(self, block: re.Match[str], console: Console) -> str:
        kind, what, old = block["kind"], block["what"].lstrip(": "), block["body"]
        if kind == "excerpt":
            stage, _, starts = what.partition(": ")
            new = excerpt(self.stages.text(stage), starts.split(" | ")) + "\n"
        elif kind == "run":
            new = console.replay(old)
            if "numbers vary" in what and without_numbers(new) == without_numbers(old):
                new = old
        elif kind == "file":
            new = old
            (console.folder / what).write_text(old, encoding="utf-8")
        else:
            new = old
            console.run_python(old)
        start, end = (place - block.start() for place in block.span("body"))
        return block[0][:start] + new + block[0][end:]


def without_numbers(text: str) -> str:
    """What is the same on every machine and in every run."""
    return " ".join(_NUMBER.sub("#", text).split())


def count_blocks(text: str) -> int:
    """How many blocks of a page are kept up to date."""
    return len(_BLOCK.findall(text))
