"""What the programs of this folder share: a log that is kept, an engine of a network, and its run with pycuda."""

# What stands for TensorRT and CUDA has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import sys
import traceback

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

EXPLICIT = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


class Log(trt.ILogger):
    """Keeps every line."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, msg):
        self.lines.append((severity, msg))

    def text(self, *severities):
        return "\n".join(m for s, m in self.lines if not severities or s in severities)

    def errors(self):
        return self.text(trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR)


class Build:
    """A builder, its network of explicit batch and its configuration."""

    def __init__(self, flags=EXPLICIT):
        self.log = Log()
        self.builder = trt.Builder(self.log)
        self.network = self.builder.create_network(flags)
        self.config = self.builder.create_builder_config()

    def engine(self, *outputs):
        for tensor in outputs:
            self.network.mark_output(tensor)
        plan = self.builder.build_serialized_network(self.network, self.config)
        assert plan is not None, self.log.errors()
        return trt.Runtime(self.log).deserialize_cuda_engine(plan)

    def refused(self, *outputs):
        """The errors of a build that gives nothing."""
        for tensor in outputs:
            self.network.mark_output(tensor)
        assert self.builder.build_serialized_network(self.network, self.config) is None, "this was built"
        return self.log.errors()

    def run(self, *outputs, **feeds):
        """The outputs of an engine with these tensors as outputs, for these inputs."""
        found = infer(self.engine(*outputs), **feeds)
        return found[0] if len(found) == 1 else found


def infer(engine, context=None, **feeds):
    """Run by names; shapes of inputs are set where they are dynamic. Gives the outputs in their order."""
    context = context or engine.create_execution_context()
    stream = cuda.Stream()
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    held, outputs = [], []
    for name in names:
        if engine.get_tensor_mode(name) != trt.TensorIOMode.INPUT:
            continue
        array = np.ascontiguousarray(feeds[name])
        assert array.dtype == trt.nptype(engine.get_tensor_dtype(name)), (name, array.dtype)
        if engine.get_tensor_location(name) == trt.TensorLocation.HOST:
            held.append(array)
            assert context.set_tensor_address(name, array.ctypes.data)
            continue
        if -1 in tuple(engine.get_tensor_shape(name)):
            assert context.set_input_shape(name, array.shape), name
        memory = cuda.mem_alloc(max(array.nbytes, 1))
        held.append((memory, array))
        cuda.memcpy_htod_async(memory, array, stream)
        assert context.set_tensor_address(name, int(memory))
    assert context.infer_shapes() == []
    for name in names:
        if engine.get_tensor_mode(name) != trt.TensorIOMode.OUTPUT:
            continue
        shape = tuple(context.get_tensor_shape(name))
        host = np.empty(shape, trt.nptype(engine.get_tensor_dtype(name)))
        if engine.get_tensor_location(name) == trt.TensorLocation.HOST:
            assert context.set_tensor_address(name, host.ctypes.data)
            outputs.append((None, host))
            continue
        memory = cuda.mem_alloc(max(host.nbytes, 1))
        assert context.set_tensor_address(name, int(memory))
        outputs.append((memory, host))
    assert context.execute_async_v3(stream.handle)
    for memory, host in outputs:
        if memory is not None:
            cuda.memcpy_dtoh_async(host, memory, stream)
    stream.synchronize()
    return [host for _, host in outputs]


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same(found, wanted, rtol=1e-5, atol=1e-6):
    """Shapes, types and numbers are the same."""
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape, f"shape {found.shape}, wanted {wanted.shape}"
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)


def main(names):
    """Run every public function of a program, one line each; the programs of a file are independent."""
    failed = 0
    only = sys.argv[1:]
    for name, program in list(names.items()):
        if only and name not in only:
            continue
        if name.startswith("_") or getattr(program, "__module__", "") != "__main__" or not callable(program):
            continue
        if isinstance(program, type):
            continue
        try:
            program()
            print(f"PASSED {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}END {name}", flush=True)
    sys.exit(failed > 0)
