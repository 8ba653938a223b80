"""What an embedder process gets to see of the environment: no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_FOR_THE_NETWORK = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "HF_ENDPOINT",
)


def clean(
    environ: Mapping[str, str], folder: Path, threads: int, *, is_online: bool = False
) -> dict[str, str]:
    """The variables for a process that lives below `folder` and computes with so many threads.
    Unless it is to fetch a model, libraries are told that there is no network.
    """
    passed = (*_PASSED, *_FOR_THE_NETWORK) if is_online else _PASSED
    found = {name: environ[name] for name in passed if name in environ}
    found |= dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    found |= {
        "HOME": str(folder),  # where libraries look for tokens and write caches
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MALLOC_TRIM_THRESHOLD_": "1048576",  # else 60 MB that loading took are never given back
        "CUDA_VISIBLE_DEVICES": "",
    }
    if not is_online:
        found |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return found
