"""Deconvolutions that warpgroups compute, all remainders of the output position in one launch."""

from __future__ import annotations

from contractions import Problem

DECONVOLUTIONS = {
    "whole steps": Problem((2, 64, 6, 7), (64, 24, 2, 2), stride=(2,), transposed=True),
    "a row more": Problem((1, 64, 5, 5), (64, 40, 4, 4), stride=(2,), pre=(1,), post=(0,), transposed=True),
    "padding": Problem((1, 64, 5, 6), (64, 72, 4, 4), (2,), pre=(1,), post=(1,), transposed=True, residual=True),
    "no stride": Problem((1, 64, 5, 6), (64, 16, 5, 5), pre=(1,), post=(1,), transposed=True),
    "uneven": Problem((2, 40, 4, 7), (40, 33, 3, 2), (2, 3), pre=(1, 0), post=(0, 1), transposed=True, residual=True),
    "volumes": Problem((1, 32, 3, 3, 4), (32, 16, 3, 3, 3), stride=(2,), pre=(1,), post=(0,), transposed=True),
    "dilated": Problem((1, 64, 5, 5), (64, 16, 4, 4), (3, 2), (1, 2), (2, 1), (1, 0), transposed=True, residual=True),
    "signals": Problem((2, 64, 9), (64, 16, 5), stride=(4,), pre=(1,), transposed=True),
}
