"""Which code a build for GPUs makes, for whoever asks without making any."""

ARCHITECTURES = ("sm_80", "sm_90a")
SWITCH = "MLIRT_CHECK_MACHINE_CODE"
"""The environment variable that has each kernel checked by machine_code/check.py; needs nvdisasm."""


def check_architecture(name: str) -> None:
    """Raise `InvalidInputError` that lists the names for an architecture that no code is made for."""
    from mlirt.errors import InvalidInputError

    if name not in ARCHITECTURES:
        raise InvalidInputError(f"code for {name!r} is not made: expected one of {', '.join(ARCHITECTURES)}")
