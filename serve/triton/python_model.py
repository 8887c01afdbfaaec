"""What Triton's Python back end calls: each batch of requests is run together by the plan beside model.py."""

# Triton puts the module into its own process: it is in no package.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlirt.errors import MlirtError
from mlirt.runtime.engine import load
from mlirt.serve.batching.engine_batcher import engine_batcher
from mlirt.serve.batching.limits import Limits


class PythonModel:
    """Triton's interface for models in Python: `initialize`, `execute`, `finalize`."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Open the plan; what Triton says of the model and its place is in `args`."""
        import triton_python_backend_utils

        self._triton: Any = triton_python_backend_utils
        config = json.loads(args["model_config"])
        plan = Path(args["model_repository"]) / args["model_version"] / "engine.plan"
        most = int(config["max_batch_size"])
        self._engine = load(plan)
        limits = Limits(max_batch=max(1, most), max_queue=1 << 20, max_queue_mb=1 << 20, max_request_mb=1 << 20)
        self._batcher = engine_batcher(self._engine, limits, batch=most > 0)
        self._inputs = [tensor.name for tensor in self._engine.inputs]
        self._outputs = [tensor.name for tensor in self._engine.outputs]

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """A response for each request, in their order; one that fails has the error."""
        triton = self._triton
        feeds = [
            {name: triton.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs}
            for request in requests
        ]
        answers = self._batcher.submit_all(feeds)
        return [self._response(request, answer) for request, answer in zip(requests, answers, strict=True)]

    def finalize(self) -> None:
        """The model is unloaded."""
        self._batcher.close()

    def _response(self, request: Any, answer: Any) -> Any:
        triton = self._triton
        try:
            outputs = answer.result()
        except MlirtError as error:
            return triton.InferenceResponse(output_tensors=[], error=triton.TritonError(str(error)))
        wanted = request.requested_output_names()
        return triton.InferenceResponse(
            output_tensors=[triton.Tensor(name, outputs[name]) for name in self._outputs if name in wanted]
        )
