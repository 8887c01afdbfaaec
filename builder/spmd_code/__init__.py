"""The LLVM IR of the object that drives CPU engines, which `builder/spmd_main.py` describes and puts together."""
