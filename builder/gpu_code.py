"""Which code a build for GPUs makes, for whoever asks without making any."""

ARCHITECTURES = ("sm_80", "sm_90a")
SWITCH = "MLIRT_CHECK_MACHINE_CODE"
"""The environment variable that has each kernel checked by machine_code/check.py; needs nvdisasm."""
