"""The worker process: opens a plan, says what the network takes, and answers one request after the other.

`python -m mlirt.serve.replicas.worker FD PLAN THREADS`: FD is its end of the socket. It ends with the server, whose end
of the socket is then closed.
"""

from __future__ import annotations

import signal
import socket
import sys

from mlirt.errors import MlirtError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.visible_devices import current_bus_id
from mlirt.serve.batching.engine_batcher import check_stateless
from mlirt.serve.batching.signature import signature_of
from mlirt.serve.replicas.messages import Message, receive, send


def main(arguments: list[str]) -> int:
    """Answer until there is nobody who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes what it has started
    descriptor, plan, threads = arguments
    with socket.socket(fileno=int(descriptor)) as end:
        try:
            engine = load(plan, threads=int(threads) or None)
            check_stateless(engine)
        except Exception as error:
            send(end, Message(_told(error)))
            return 1
        send(end, Message({"signature": signature_of(engine).to_record(), "gpu": _gpu_of(engine)}))
        try:
            while True:
                send(end, _answer(engine, receive(end)))
        except (EOFError, ConnectionError):
            return 0


def _answer(engine: Engine, asked: Message) -> Message:
    try:
        return Message({}, engine.run(asked.arrays, timeout=asked.words["timeout"]))
    except Exception as error:
        return Message(_told(error))


def _gpu_of(engine: Engine) -> str | None:
    if engine.target != "cuda":
        return None
    with engine.device_current():
        return current_bus_id()


def _told(error: Exception) -> dict[str, str]:
    text = str(error) if isinstance(error, MlirtError) else f"{type(error).__name__}: {error}"
    return {"error": type(error).__name__, "message": text}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
