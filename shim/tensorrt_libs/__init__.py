"""`import tensorrt_libs` is mlirt: its names are those of `mlirt.tensorrt`."""

import sys

from mlirt.import_names.finder import fill_tensorrt, install

install()
fill_tensorrt(sys.modules[__name__])
