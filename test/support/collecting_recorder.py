"""An error recorder for tests."""

from __future__ import annotations

import mlirt as trt


class CollectingRecorder(trt.IErrorRecorder):
    """Keeps errors in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[tuple[trt.ErrorCodeTRT, str]] = []

    def num_errors(self) -> int:
        return len(self.errors)

    def get_error_code(self, arg0: int) -> trt.ErrorCodeTRT:
        return self.errors[arg0][0]

    def get_error_desc(self, arg0: int) -> str:
        return self.errors[arg0][1]

    def has_overflowed(self) -> bool:
        return False

    def clear(self) -> None:
        self.errors.clear()

    def report_error(self, arg0: trt.ErrorCodeTRT, arg1: str) -> bool:
        self.errors.append((arg0, arg1))
        return True
