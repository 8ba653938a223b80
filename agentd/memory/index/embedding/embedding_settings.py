"""What turns texts into vectors: `provider` of `[memory_search]`, and
`[memory_search.embedder]`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from agentd.core.settings import (
    ActsOutside,
    CredentialName,
    Duration,
    FilePath,
    KeyFile,
    KeyVariable,
    PositiveDuration,
    ServiceAddress,
    Settings,
    at_defaults,
    openai_needs_key,
)

Kind = Literal[
    "packaged", "both", "multilingual", "onnx", "sentence-transformers", "openai", "static", "none"
]
Provider = Literal["auto", "local", Kind]


_SENT = ActsOutside("has notes sent to a service", when=lambda provider: provider == "openai")


class ModelSettings(Settings):
    """The model that turns texts into vectors, and how it is run or asked."""

    model: Annotated[FilePath, ActsOutside("is loaded as a model")] = Field(
        default="",
        description="a folder, an .onnx file with its tokenizer.json, or a name on the model hub; "
        "for openai the service's name; empty: all-MiniLM-L6-v2, for openai text-embedding-3-small",
    )
    revision: str = Field(
        default="",
        description="commit or tag of a model from the hub; empty: the newest when it is fetched",
        pattern=r"^[A-Za-z0-9._/-]*$",
    )
    allow_download: bool = Field(
        default=False, description="whether a model that is named may be fetched from the hub"
    )
    dimension: int = Field(
        default=0,
        ge=0,
        le=8192,
        description="numbers in a vector; 0: known for common models, else it must be said",
    )
    query_prefix: str = Field(
        default="", description='what stands before a question for some models: "query: "'
    )
    text_prefix: str = Field(
        default="", description='what stands before a text for some models: "passage: "'
    )
    idle: PositiveDuration = Field(
        default=timedelta(minutes=10),
        description="how long the process with a local model waits for work before it ends",
    )
    timeout: PositiveDuration = Field(
        default=timedelta(seconds=60), description="longest time of one batch or request"
    )
    threads: int = Field(default=1, ge=1, le=64, description="threads of a local model")
    memory_limit_mb: int = Field(
        default=4000,
        ge=500,
        le=1_000_000_000,
        description="most memory of the process with a local model",
    )
    base_url: ServiceAddress = Field(
        default="",
        description="other address for openai, with /v1; empty means the official one",
    )
    api_key_env: KeyVariable = Field(
        default="", description="environment variable that holds the key; empty: OPENAI_API_KEY"
    )
    api_key_credential: CredentialName = Field(
        default="",
        description="name of the systemd credential that holds the key; empty: openai_api_key",
    )
    api_key_file: KeyFile = ""
    batch_texts: int = Field(default=64, ge=1, le=2048, description="most texts in one request")
    batch_tokens: int = Field(
        default=8000, ge=100, description="most tokens in one request, as estimated"
    )
    daily_tokens: int = Field(
        default=0, ge=0, description="most tokens a day that the service is sent; 0: no limit"
    )
    tries: int = Field(
        default=4, ge=1, le=5, description="how often a failing request is made before giving up"
    )
    retry_after_limit: Duration = Field(
        default=timedelta(seconds=60),
        description="longest wait that the service may ask for before a new try",
    )

    @property
    def table(self) -> str:
        """The table of the configuration that holds these settings."""
        return "[memory_search.embedder]"

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        return self.api_key_env or "OPENAI_API_KEY"

    @property
    def key_credential(self) -> str:
        """The name of the systemd credential that holds the key."""
        return self.api_key_credential or "openai_api_key"

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key. Servers other than OpenAI's may need none."""
        return openai_needs_key(self.base_url)


class EmbedderFallbackSettings(ModelSettings):
    """An embedder that makes the vectors while those before it cannot be had."""

    provider: Annotated[
        Literal["openai", "packaged", "both", "multilingual", "onnx", "sentence-transformers"],
        _SENT,
    ] = Field(default="openai", description='like provider of [memory_search]; usually "openai"')

    @property
    def table(self) -> str:
        """The table of the configuration that holds these settings."""
        return "fallback of [memory_search]"


class EmbedderSettings(Settings):
    """Which embedder makes the vectors."""

    provider: Annotated[Provider, _SENT] = Field(
        default="auto",
        description=(
            '"auto" or "local" (the best that is installed), "packaged" (two models that come '
            'along, one for English and one for many languages, joined), "onnx" (the first of '
            'them), "multilingual" (all of the second), "both" (the first and that, joined), '
            '"static" (a table of words), "sentence-transformers", "openai" (and what speaks like '
            'it), or "none"'
        ),
    )
    fallback: tuple[EmbedderFallbackSettings, ...] = Field(
        default=(),
        description=(
            "embedders asked in turn while that one fails or is too slow: "
            '[{base_url = "…", model = "…", dimension = …}], with provider, if not "openai", '
            "and any key of [memory_search.embedder]"
        ),
    )
    embedder: ModelSettings = at_defaults()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may hold the keys of services."""
        return tuple(model.key_variable for model in (self.embedder, *self.fallback))

    @field_validator("fallback")
    @classmethod
    def _has_a_first(
        cls, fallback: tuple[EmbedderFallbackSettings, ...], info: ValidationInfo
    ) -> tuple[EmbedderFallbackSettings, ...]:
        if fallback and info.data.get("provider") in ("static", "none"):
            msg = 'makes no sense behind provider = "static", which always answers, or "none"'
            raise ValueError(msg)
        return fallback
