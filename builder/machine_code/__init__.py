"""Checks of machine code for NVIDIA GPUs: no kernel uses what an asynchronous operation has not finished.

The assembler decides the order of instructions, and no text before it can prove that order; so it is read from the
machine code. `check.py` says what is covered and what is not.
"""
