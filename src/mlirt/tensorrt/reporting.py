"""How an error reaches the user of the TensorRT names: one line in the log, or the error recorder."""

from __future__ import annotations

from traceback import format_exception

from mlirt.errors import (
    CompileError,
    InvalidInputError,
    InvalidModelError,
    MlirtError,
    PlanError,
    UnmetConditionError,
    UnsupportedError,
)
from mlirt.tensorrt.error_recorder import ErrorCodeTRT, IErrorRecorder
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.logger import ILogger, Severity

_CODES: tuple[tuple[type[Exception], ErrorCodeTRT], ...] = (
    (UnsupportedError, ErrorCodeTRT.UNSUPPORTED_STATE),
    (UnmetConditionError, ErrorCodeTRT.FAILED_EXECUTION),
    (InvalidInputError, ErrorCodeTRT.INVALID_ARGUMENT),
    (InvalidModelError, ErrorCodeTRT.INVALID_CONFIG),
    (PlanError, ErrorCodeTRT.FAILED_INITIALIZATION),
    (CompileError, ErrorCodeTRT.INTERNAL_ERROR),
)
_KINDS = {
    ErrorCodeTRT.INVALID_ARGUMENT: "API Usage Error",
    ErrorCodeTRT.UNSUPPORTED_STATE: "Unsupported",
    ErrorCodeTRT.FAILED_INITIALIZATION: "Serialization Error",
}


class Reporter:
    """Hands errors and warnings on; an error recorder, where there is one, gets the errors as well."""

    def __init__(self, logger: ILogger, recorder: IErrorRecorder | None = None) -> None:
        self.logger = logger
        self.recorder = recorder

    def of_its_own(self) -> Reporter:
        """The reporter of an object that another one made: it inherits the recorder, and may change its own."""
        return Reporter(self.logger, self.recorder)

    def error(self, where: str, error: Exception | str) -> None:
        """Report an error; `where` is the call that failed."""
        code = code_of(error)
        text = str(error) if isinstance(error, str | MlirtError) else f"{type(error).__name__}: {error}"
        if self.recorder is not None:
            self._record(self.recorder, code, text[: IErrorRecorder.MAX_DESC_LENGTH])
        if isinstance(error, Exception) and not isinstance(error, MlirtError):
            self.logger.log(Severity.VERBOSE, "".join(format_exception(error)))
        kind = _KINDS.get(code, "Internal Error")
        self.logger.log(Severity.ERROR, f"{int(code)}: [{where}] Error Code {int(code)}: {kind} ({text})")

    def _record(self, recorder: IErrorRecorder, code: ErrorCodeTRT, text: str) -> None:
        try:
            recorder.report_error(code, text)
        except Exception as error:  # the user's own code
            self.logger.log(Severity.WARNING, f"the error recorder raised {type(error).__name__}: {error}")

    def warning(self, text: str) -> None:
        self.logger.log(Severity.WARNING, text)

    def info(self, text: str) -> None:
        self.logger.log(Severity.INFO, text)

    def verbose(self, text: str) -> None:
        self.logger.log(Severity.VERBOSE, text)


class Reporting(FixedAttributes):
    """An object that has a reporter, and TensorRT's property for the reporter's error recorder."""

    reporter: Reporter

    @property
    def error_recorder(self) -> IErrorRecorder | None:
        return self.reporter.recorder

    @error_recorder.setter
    def error_recorder(self, recorder: IErrorRecorder | None) -> None:
        self.reporter.recorder = recorder


def code_of(error: Exception | str) -> ErrorCodeTRT:
    """The code of an error; a text alone is a wrong argument."""
    if isinstance(error, str):
        return ErrorCodeTRT.INVALID_ARGUMENT
    return next((code for kind, code in _CODES if isinstance(error, kind)), ErrorCodeTRT.UNSPECIFIED_ERROR)
