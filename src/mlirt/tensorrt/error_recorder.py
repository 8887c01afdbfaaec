"""Error recorders: objects of the user that get errors in the place of the logger (tensorrt-features.md#17.14 to
17.16).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mlirt.tensorrt.enumeration import Enumeration


class ErrorCodeTRT(Enumeration):
    """What went wrong."""

    SUCCESS = 0
    UNSPECIFIED_ERROR = 1
    INTERNAL_ERROR = 2
    INVALID_ARGUMENT = 3
    INVALID_CONFIG = 4
    FAILED_ALLOCATION = 5
    FAILED_INITIALIZATION = 6
    FAILED_EXECUTION = 7
    FAILED_COMPUTATION = 8
    INVALID_STATE = 9
    UNSUPPORTED_STATE = 10


class IErrorRecorder(ABC):
    """Keeps errors for its owner."""

    MAX_DESC_LENGTH = 127

    def __init__(self) -> None:
        """Subclasses call this, as TensorRT's binding wants it."""

    @abstractmethod
    def num_errors(self) -> int:
        """How many errors are kept."""

    @abstractmethod
    def get_error_code(self, arg0: int) -> ErrorCodeTRT:
        """The code of an error."""

    @abstractmethod
    def get_error_desc(self, arg0: int) -> str:
        """The text of an error."""

    @abstractmethod
    def has_overflowed(self) -> bool:
        """Whether errors were lost."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all errors."""

    @abstractmethod
    def report_error(self, arg0: ErrorCodeTRT, arg1: str) -> bool:
        """Take an error; the text is cut to `MAX_DESC_LENGTH`."""
