"""Loggers: where builders, parsers and engines say what they do (tensorrt-features.md#17.11 to 17.13)."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from datetime import datetime

from mlirt.tensorrt.enumeration import Enumeration


class Severity(Enumeration):
    """How grave a message is; smaller is graver."""

    INTERNAL_ERROR = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    VERBOSE = 4


class ILogger(ABC):
    """The interface of loggers: subclasses get each message, from any thread."""

    Severity = Severity
    INTERNAL_ERROR = Severity.INTERNAL_ERROR
    ERROR = Severity.ERROR
    WARNING = Severity.WARNING
    INFO = Severity.INFO
    VERBOSE = Severity.VERBOSE

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def log(self, severity: Severity, msg: str) -> None:
        """Take a message."""


class Logger(ILogger):
    """Prints `[11/21/2026-16:25:00] [TRT] [W] text`: information to stdout, warnings and worse to stderr."""

    def __init__(self, min_severity: Severity = Severity.WARNING) -> None:
        super().__init__()
        self.min_severity = min_severity
        self._lock = threading.Lock()

    def log(self, severity: Severity, msg: str) -> None:
        if severity > self.min_severity:
            return
        letter = "FEWIV"[severity]
        stamp = datetime.now().strftime("%m/%d/%Y-%H:%M:%S")
        with self._lock:
            stream = sys.stdout if severity >= Severity.INFO else sys.stderr
            print(f"[{stamp}] [TRT] [{letter}] {msg}", file=stream)
