"""A net that onnxruntime has loaded. Imported by the embedder process alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnxruntime


def session(
    net: Path, threads: int, weights: Mapping[str, npt.NDArray[Any]] | None = None
) -> onnxruntime.InferenceSession:
    """The net in the file, with those of its weights that the file does not hold.

    onnxruntime raises bare exceptions for bad files.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it keeps what the longest batch took, 80 MB
    options.log_severity_level = 4
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(str(net), options, providers=["CPUExecutionProvider"])
