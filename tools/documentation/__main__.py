"""`python -m mlirt.tools.documentation [ROOT]`: write all documents of the repository anew; `make docs` calls it."""

from __future__ import annotations

import sys
from pathlib import Path

from mlirt.errors import MlirtError
from mlirt.tools.documentation.pages import GENERATED, LIVING, fresh_text
from mlirt.tools.output_files import write_output


def main(arguments: list[str]) -> int:
    """Write what changed and name it; the result is the exit code."""
    root = Path(arguments[0] if arguments else ".").resolve()
    for name in (*GENERATED, *LIVING):
        try:
            text = fresh_text(name, root)
        except MlirtError as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 1
        _write(root / name, text, name)
    return 0


def _write(path: Path, text: str, name: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(text, str(path))
        print(f"wrote {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
