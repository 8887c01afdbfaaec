"""Run by Python when it starts under `python -m mlirt.as_tensorrt`: binds the names, then runs the other sitecustomize.

An interpreter in which mlirt is not installed is left as it is.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _run_the_other() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    from mlirt.import_names.finder import install
except ImportError:
    pass
else:
    install()
_run_the_other()
