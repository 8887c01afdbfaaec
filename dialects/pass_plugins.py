"""Pass plugins: Python files of users with passes, ops, tactics and ONNX handlers, found as the package's own are.

A file is executed once for its content; what it brings counts while `using` says so, in the running context alone, so
that one build with a plugin does not change the next one without it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from xdsl.interpreter import InterpreterFunctions

_PREFIX = "mlirt_pass_plugin_"
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PassPlugin:
    """A file that was executed. `digest` is of its text and of the modules beside it that it imports."""

    path: Path
    digest: str
    module: ModuleType
    handlers: dict[tuple[str, str], dict[int, Any]] = field(default_factory=dict[tuple[str, str], dict[int, Any]])
    """What `onnx_op` registered in it: handlers by domain, name and opset."""

    def classes(self, base: type[T]) -> Iterator[type[T]]:
        """The classes that the file itself defines."""
        for value in vars(self.module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == self.module.__name__:
                yield value

    def interpreters(self) -> Iterator[type[InterpreterFunctions]]:
        """The classes of functions of xDSL's interpreter that the file itself defines."""
        if "xdsl.interpreter" in sys.modules:  # else no plugin has imported it
            from xdsl.interpreter import InterpreterFunctions

            yield from self.classes(InterpreterFunctions)

    def objects(self, kind: type[T]) -> Iterator[T]:
        """The global variables of a type."""
        yield from (value for value in vars(self.module).values() if isinstance(value, kind))


_LOADED: dict[Path, tuple[PassPlugin, tuple[Path, ...]]] = {}
_ACTIVE: ContextVar[tuple[PassPlugin, ...]] = ContextVar("active pass plugins", default=())
_HANDLERS: dict[str, dict[tuple[str, str], dict[int, Any]]] = {}


def active() -> tuple[PassPlugin, ...]:
    """The plugins that count now."""
    return _ACTIVE.get()


def active_digest() -> str:
    """A digest of all plugins that count now; empty where there is none. For keys of caches."""
    return ",".join(plugin.digest for plugin in active())


@contextmanager
def using(paths: Sequence[str | os.PathLike[str]], flag: str = "plugins") -> Generator[tuple[PassPlugin, ...]]:
    """What these files bring counts meanwhile, beside what counts already.

    Raises `InvalidInputError` in one line for a file that cannot be executed; `flag` is how the user named it.
    """
    if any(not os.fspath(path) for path in paths):
        raise InvalidInputError(f"{flag}: expected the path of a Python file, not an empty one")
    wanted = [load(Path(path), flag) for path in paths]
    token = _ACTIVE.set(tuple(dict.fromkeys((*active(), *wanted))))
    try:
        yield active()
    finally:
        _ACTIVE.reset(token)


def place_in_plugin(error: BaseException) -> str:
    """Where in files of plugins, or in modules beside them, an error arose, as ` (FILE.py, line 3)`; else empty."""
    files = {str(file): file.name for place, (_, beside) in _LOADED.items() for file in (place, *beside)}
    found = [frame for frame in extract_tb(error.__traceback__) if frame.filename in files]
    return f" ({files[found[-1].filename]}, line {found[-1].lineno})" if found else ""


def with_plugins(function: Callable[P, T]) -> Callable[P, T]:
    """Let the files that a call names as `plugins=` count while it runs."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given = cast("str | Sequence[str]", kwargs.get("plugins") or ())
        with using([given] if isinstance(given, str | os.PathLike) else given):
            return function(*args, **kwargs)

    return call


def load(path: Path, flag: str = "plugins") -> PassPlugin:
    """The plugin in a file, executed again where it or a module beside it has changed."""
    if not path.is_file():
        raise InvalidInputError(f"{flag}={path}: {'that is a folder' if path.is_dir() else 'there is no such file'}")
    if path.suffix != ".py":
        raise InvalidInputError(f"{flag}={path}: expected a Python file, whose name ends in .py")
    place = path.resolve()
    if place in _LOADED:
        plugin, beside = _LOADED[place]
        if _digest([place, *beside]) == plugin.digest:
            return plugin
        for name in [name for name, module in sys.modules.items() if _file_of(module) in beside]:
            del sys.modules[name]
    _LOADED[place] = _executed(path, place, flag)
    return _LOADED[place][0]


def register_handler(module: str, domain: str, name: str, since: int, handler: Callable[..., Any]) -> bool:
    """Keep an ONNX handler for the plugin whose module it is defined in; False where that is no plugin."""
    if module not in _HANDLERS:
        return False
    _HANDLERS[module].setdefault((domain, name), {})[since] = handler
    return True


def _executed(path: Path, place: Path, flag: str) -> tuple[PassPlugin, tuple[Path, ...]]:
    name = f"{_PREFIX}{place.stem}_{hashlib.blake2b(os.fsencode(place), digest_size=4).hexdigest()}"
    spec = spec_from_file_location(name, place, loader=_Loader(name, str(place)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module  # dataclasses look their module up
    handlers = _HANDLERS[name] = {}
    if str(place.parent) not in sys.path:
        sys.path.append(str(place.parent))  # last, so that no file in it hides a package
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise InvalidInputError(f"{flag}={path}: {_said(error, place)}") from error
    found = {_file_of(sys.modules[other]) for other in set(sys.modules) - before - {name}}
    beside = tuple(sorted(file for file in found if file is not None and file.is_relative_to(place.parent)))
    return PassPlugin(path, _digest([place, *beside]), module, handlers), beside


class _Loader(SourceFileLoader):
    """Compiles the file each time: bytecode is found by its date, which an edit within a second does not change."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _digest(files: Sequence[Path]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for file in files:
        try:
            data = file.read_bytes()
        except OSError:
            data = b""
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def _said(error: BaseException, place: Path) -> str:
    """An error in one line, with the line of the file that it came through last."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(place)]
    if isinstance(error, SyntaxError) and error.filename == str(place):
        lines = [error.lineno]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {' '.join(str(error).split())}"
