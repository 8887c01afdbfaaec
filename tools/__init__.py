"""What shows: the command-line tools."""

import sys

# `python -m mlirt.tools.rt_opt` puts the current folder before Python's own library; a model may lie there with files
# that its maker called as modules of that. The commands (`rt-opt`) and `python -P -m` never look there.
_IS_MODULE = any(word.removeprefix("-m").startswith("mlirt.tools.") for word in sys.orig_argv[1:])
if sys.argv[:1] == ["-m"] and _IS_MODULE and not sys.flags.safe_path:
    del sys.path[0]
