"""What the code calls: functions of the system (`builder/spmd_code/systems.py`) and instructions of the processor."""

DECLARATIONS = """{declarations}{pause_declaration}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64, i64)
"""
