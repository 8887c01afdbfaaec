"""`python -m mlirt.tools.documentation.site FOLDER`: write the tree of pages that mkdocs reads; `make site`.

It is run in the root of the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mlirt.tools.documentation.site.tree import write_tree


def main(arguments: list[str]) -> int:
    """Write the tree; the result is the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 1
    write_tree(Path.cwd(), Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
