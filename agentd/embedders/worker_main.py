"""The embedder process: `python -m agentd.embedders.worker_main`, with frames on its standard streams.

The first frame is a Spec, or the order to export a model; each further one has texts to embed. Ends
with the daemon, and when nobody has asked for a while.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from agentd.embedders.frames import Frame
from agentd.embedders.joined import Joined, Model
from agentd.embedders.process import limit_memory, settle
from agentd.embedders.spec import Spec
from agentd.embedders.wire import Wire
from agentd.errors import AgentdError

log = logging.getLogger("agentd.embedders")


def main() -> int:
    """Serve until nobody asks any more."""
    settle(os.getppid())
    wire = Wire()
    order = wire.receive()
    if order is None:
        return 1
    try:
        return _export(order, wire) if "export" in order.head else _serve(order, wire)
    except (AgentdError, MemoryError) as error:
        wire.send(error=str(error) or "not enough memory", cure=getattr(error, "cure", ""))
    except Exception as error:
        # Libraries raise what they like; the daemon is told, and decides what comes next.
        log.exception("the embedder failed")
        wire.send(error=f"{type(error).__name__}: {error}"[:300])
    return 1


def _serve(order: Frame, wire: Wire) -> int:
    spec = Spec.from_json(order.head)
    limit_memory(spec.memory_limit_mb)
    model = load(spec, wire)
    wire.send(ready=True, dimension=model.dimension)
    while (request := wire.receive(spec.idle)) is not None:
        rows = model.embed(request.head["texts"], query=request.head["query"])
        wire.send(rows.astype("<f4", copy=False).tobytes(), id=request.head["id"])
    return 0


def load(spec: Spec, wire: Wire) -> Model:
    """The model, with the libraries that it needs and no others. Raises EmbedderFault."""
    if spec.backend == "onnx":
        from agentd.embedders.onnx_model import OnnxModel

        return OnnxModel(Path(spec.source), spec.threads)
    if spec.backend in ("multilingual", "both"):
        from agentd.embedders.e5_files import E5Files
        from agentd.embedders.e5_model import E5Model

        files = E5Files.find(Path(spec.source))
        many = E5Model(files, spec.threads)
        if spec.backend == "multilingual":
            return many
        from agentd.embedders.onnx_files import PACKAGED
        from agentd.embedders.onnx_model import OnnxModel

        return Joined(((OnnxModel(PACKAGED, spec.threads), 1.0), (many, files.weight)))
    from agentd.embedders.torch_model import TorchModel

    source = spec.source
    if spec.download:
        from agentd.embedders.hub import fetch

        source = fetch(spec, lambda text: wire.send(progress=text))
    return TorchModel(source, spec.threads)


def _export(order: Frame, wire: Wire) -> int:
    from agentd.embedders.onnx_export import export

    source, target = order.head["export"], order.head["target"]
    limit_memory(order.head["memory_limit_mb"])
    made = export(
        Path(source), Path(target), order.head["name"], lambda text: wire.send(progress=text)
    )
    wire.send(ready=True, **made)
    return 0


if __name__ == "__main__":
    # Libraries of models take a second to tidy up what the kernel takes back anyway.
    os._exit(main())
