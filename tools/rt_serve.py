"""rt-serve: answers requests for inference over HTTP (and gRPC) by the Open Inference Protocol, batching them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.serve.batching.limits import Limits
from mlirt.serve.models.backend import Backend, ServeSettings, open_backend
from mlirt.serve.models.model import Model
from mlirt.serve.models.models import Models
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.flag_values import natural, positive
from mlirt.tools.tool_main import tool_main

if TYPE_CHECKING:
    from mlirt.serve.http.server import HttpSettings

_LOG = logging.getLogger("mlirt.serve")
_BUILT = (".onnx", ".mlir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0 once it was told to end, or 1 for an error."""
    return tool_main("rt-serve", argv, _parse_arguments, _serve, lambda arguments: arguments.models[0])


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-serve", __doc__)
    add = parser.add_argument
    add("models", metavar="[NAME=]FILE", nargs="+", help="plan files, or ONNX models or IR text, which are built")
    add("--host", default="127.0.0.1", help="the address to listen on; 0.0.0.0 is all (default: %(default)s)")
    add("--port", type=_port, default=8000, help="of HTTP; 0 takes a free one (default: %(default)s)")
    add("--grpc-port", type=_port, metavar="PORT", help="of gRPC; none without it")
    add("--allow-reload", action="store_true", help="let clients load and unload models; SIGHUP loads all anew anyway")
    add("--verbose", action="store_true", help="log more, and print tracebacks of errors")
    add("--quiet", action="store_true", help="log warnings and errors alone")
    _add_runs(parser.add_argument_group("runs").add_argument)
    _add_limits(parser.add_argument_group("limits").add_argument)
    build = parser.add_argument_group("builds of models and IR").add_argument
    build("--target", choices=("auto", "cpu", "cuda"), default="auto", help="what to build for (default: %(default)s)")
    build("--precision", default="fp32", help="the precision of the build (default: %(default)s)")
    return parser.parse_args(argv)


def _add_runs(add: object) -> None:
    assert callable(add)
    add("--replicas", type=natural, default=0, metavar="N", help="worker processes of each model (default: this one)")
    add("--threads", type=positive, metavar="N", help="threads of each process (default: the processors divided)")
    add("--streams", type=positive, metavar="N", help="batches that run at once in this process (default: 1)")
    batch = argparse.BooleanOptionalAction
    add("--batch", action=batch, default=None, help="join requests (default: where no row depends on another)")


def _add_limits(add: object) -> None:
    assert callable(add)
    usual = Limits()
    add("--max-batch", type=positive, default=usual.max_batch, metavar="N", help="rows (default: %(default)s)")
    add(
        "--batch-sizes", type=_sizes, default=(), metavar="N,..", help="rows that batches are padded to (default: none)"
    )
    add("--delay-ms", type=_seconds, default=usual.delay_ms, metavar="MS", help="wait to fill a batch (default: 0)")
    add("--max-queue", type=positive, default=usual.max_queue, metavar="N", help="requests (default: %(default)s)")
    add("--limit", type=_lengths, default={}, metavar="SPEC", help="the greatest lengths of dimensions: h=512,w=512")
    add("--max-body-mb", type=positive, default=64, metavar="MB", help="MiB of a request (default: %(default)s)")
    add("--timeout", type=_seconds, metavar="S", help="seconds of a request that tells none (default: no limit)")


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, not {text!r}")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdigit() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"expected numbers of rows such as 1,8,32, not {text!r}")
    return tuple(sorted(map(int, parts)))


def _lengths(text: str) -> dict[str, int]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and length.isdigit() and int(length) for name, _, length in pairs):
        raise argparse.ArgumentTypeError(f"expected lengths such as h=512,w=512, not {text!r}")
    return {name: int(length) for name, _, length in pairs}


_SWITCH_SECONDS = 2e-4
"""How long a thread that has a batch's outputs may wait for the event loop to let it go on; Python's own is 5 ms."""


def _serve(arguments: argparse.Namespace) -> int:
    from mlirt.serve.http.server import HttpSettings

    level = logging.DEBUG if arguments.verbose else logging.WARNING if arguments.quiet else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    sys.setswitchinterval(_SWITCH_SECONDS)
    settings = HttpSettings(
        arguments.host, arguments.port, max_body_mb=arguments.max_body_mb, allow_reload=arguments.allow_reload
    )
    with tempfile.TemporaryDirectory(prefix="rt-serve-") as folder:
        models = Models(_models(arguments, Path(folder)))
        try:
            with asyncio.Runner(loop_factory=_new_loop) as runner:
                runner.run(_serve_until_told(models, settings, arguments.grpc_port))
        finally:
            models.close()
    return 0


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which answers sooner, where it is installed."""
    try:
        from uvloop import new_event_loop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return new_event_loop()


def _models(arguments: argparse.Namespace, folder: Path) -> list[Model]:
    limits = Limits(
        max_batch=arguments.max_batch,
        batch_sizes=arguments.batch_sizes,
        delay_ms=arguments.delay_ms,
        max_queue=arguments.max_queue,
        max_request_mb=arguments.max_body_mb,
        lengths=arguments.limit,
        timeout=arguments.timeout,
    )
    settings = ServeSettings(limits, arguments.replicas, arguments.threads, arguments.streams, arguments.batch)
    files = dict(map(_name_and_file, arguments.models))
    if len(files) < len(arguments.models):
        raise InvalidInputError("two models have the same name; give them others: NAME=FILE")
    found: list[Model] = []
    try:
        for name, file in files.items():
            found.append(_model(name, file, folder / f"{len(found)}.plan", settings, arguments))
    except BaseException:
        Models(found).close()
        raise
    return found


def _name_and_file(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    found = (name, file) if equals and "/" not in name else (Path(text).stem, text)
    if not found[0] or "/" in found[0]:
        raise InvalidInputError(f"the model {text!r} has no name; give it one: NAME=FILE")
    return found


def _model(name: str, file: str, built: Path, settings: ServeSettings, arguments: argparse.Namespace) -> Model:
    def open_now() -> Backend:
        if not file.endswith(_BUILT):
            return open_backend(file, settings)
        from mlirt.builder.compile import compile

        compile(file, arguments.target, precision=arguments.precision).save(built)
        return open_backend(str(built), settings)

    return Model(name, open_now)


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, act: Callable[[], None]) -> None:
    """Let the loop act on a signal; loops of Windows are told by a handler of the process."""
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:

        def told(*_: object) -> None:
            loop.call_soon_threadsafe(act)

        signal.signal(number, told)


async def _serve_until_told(models: Models, settings: HttpSettings, grpc_port: int | None) -> None:
    from mlirt.serve.http.server import serving

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        _on_signal(loop, number, stop.set)
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        reloads.add(loop.create_task(asyncio.to_thread(_reload_all, models)))

    if hasattr(signal, "SIGHUP"):
        _on_signal(loop, signal.SIGHUP, reload)
    async with AsyncExitStack() as servers:
        port = await servers.enter_async_context(serving(models, settings))
        where = f"http://{settings.host}:{port}"
        if grpc_port is not None:
            from mlirt.serve.grpc.server import serving as serving_grpc

            grpc_port = await servers.enter_async_context(
                serving_grpc(models, settings.host, grpc_port, settings.max_body_mb)
            )
            where += f" and grpc://{settings.host}:{grpc_port}"
        print(f"rt-serve: {', '.join(model.name for model in models)} at {where}", flush=True)
        await stop.wait()
        _LOG.info("told to end: requests that are being answered are finished")


def _reload_all(models: Models) -> None:
    """A model that cannot be opened any more goes on as it is."""
    for model in models:
        try:
            model.reload()
            _LOG.info("model %s was loaded anew", model.name)
        except MlirtError as error:
            _LOG.error("model %s was not loaded anew: %s", model.name, error)


if __name__ == "__main__":
    sys.exit(main())
