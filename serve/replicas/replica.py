"""One worker process, as the server sees it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Mapping

from mlirt import errors
from mlirt.errors import DeadlineError, MlirtError, UnavailableError
from mlirt.runtime.host_cpu import processor_count
from mlirt.runtime.visible_devices import environment_for
from mlirt.serve.batching.request import Array
from mlirt.serve.batching.signature import Signature, signature_from_record
from mlirt.serve.replicas.messages import Message, receive, send

_GRACE = 2.0
"""Seconds after a request's timeout in which the process may still say that it was late; then it hangs."""


class ReplicaEndedError(UnavailableError):
    """The process ended, or was ended, before it had answered."""


class Replica:
    """Starts a process and waits until it has opened the plan; MlirtError with its reason where it cannot.

    `device`: the only GPU that it sees, by its name in CUDA_VISIBLE_DEVICES; None lets it see those that this one does.
    """

    def __init__(self, plan: str, threads: int, start_timeout: float, device: str | None = None) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "mlirt.serve.replicas.worker", str(theirs.fileno()), plan, str(threads)]
        self._end = ours
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment_for(device)
        )
        theirs.close()
        self._guard = threading.Lock()
        try:
            ours.settimeout(start_timeout)
            hello = _checked(receive(ours))
        except (OSError, EOFError) as error:
            self.stop()
            code = self._process.returncode
            raise ReplicaEndedError(f"a replica of {plan} did not start (exit code {code}): {error}") from error
        except MlirtError:
            self.stop()
            raise
        self.signature: Signature = signature_from_record(hello.words["signature"])
        self.gpu: str | None = hello.words["gpu"]
        """Where on the bus its GPU is; None of one that computes on processors."""

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as one can know."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Return when it has ended."""
        self._process.wait()

    def ask(self, feeds: Mapping[str, Array], timeout: float | None) -> Mapping[str, Array]:
        """The outputs; one call at a time. `ReplicaEndedError` where there will be none from this process."""
        with self._guard:
            self._end.settimeout(None if timeout is None else timeout + _GRACE)
            try:
                send(self._end, Message({"timeout": timeout}, feeds))
                answer = receive(self._end)
            except TimeoutError as error:
                self.stop()
                raise DeadlineError(
                    f"the run did not end within its timeout of {timeout} s, nor {_GRACE} s later, and its process was "
                    "ended"
                ) from error
            except (OSError, EOFError) as error:
                self.stop()
                raise ReplicaEndedError(f"the replica with pid {self.pid} ended while it ran the request") from error
        return _checked(answer).arrays

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._end.close()


def _checked(message: Message) -> Message:
    name = message.words.get("error")
    if name is None:
        return message
    kind: object = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, MlirtError):
        raise kind(message.words["message"])
    raise MlirtError(message.words["message"])


def usual_threads(replicas: int) -> int:
    """The processors divided among the replicas, at least one each."""
    return max(1, processor_count() // replicas)
