"""`pycuda.autoinit` on the host: a context that there is nothing to be known of."""

from __future__ import annotations

from mlirt.import_names.host_pycuda import Context, Device

device = Device(0)
context = Context()
