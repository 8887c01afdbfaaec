"""Refuses a checkout without symbolic links, whose package would lack most of its parts."""

from pathlib import Path

from setuptools import setup

_LINKS = sorted(path for path in Path(__file__).parent.glob("src/mlirt/*") if not path.suffix and path.is_file())

if _LINKS:
    raise SystemExit(
        f"{', '.join(path.name for path in _LINKS)} in src/mlirt are text files, but symbolic links in the repository: "
        "install a wheel that was built on a system with links, or check out anew after `git config core.symlinks true`"
    )
setup()
