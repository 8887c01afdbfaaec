"""`python -m mlirt.tools.documentation [PAGE ..]`: write the documents of the repository anew, or some; `make docs`.

It is run in the root of the repository; a page is given by its path, such as `docs/tools.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mlirt.errors import MlirtError
from mlirt.tools.documentation.pages import GENERATED, LIVING, TABLES, fresh_text
from mlirt.tools.output_files import write_output


def main(arguments: list[str]) -> int:
    """Write what changed and name it; the result is the exit code."""
    root, known = Path.cwd(), (*GENERATED, *TABLES, *LIVING)
    for name in arguments:
        if name not in known:
            print(f"error: {name}: no page that is written by a program; those are {', '.join(known)}", file=sys.stderr)
            return 1
    for name in arguments or known:
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
