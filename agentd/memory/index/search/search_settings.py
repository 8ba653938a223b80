"""Settings of the search: `[memory_search]`."""

from __future__ import annotations

from datetime import date
from typing import Self

from pydantic import Field, model_validator

from agentd.core.search import Fusion, SearchOptions, SearchQuery
from agentd.core.settings import Settings, Share

_USUAL = SearchOptions()  # what was measured to be best


class SearchSettings(Settings):
    """How memory is searched."""

    hybrid_enabled: bool = Field(
        True, description="keywords and vectors together; off: vectors alone, where there are any"
    )
    fusion: Fusion = Field(
        _USUAL.fusion, description="structured, weighted or rrf: how the two become one score"
    )
    vector_weight: Share = Field(
        _USUAL.vector_weight,
        description="of the vectors' score, where fusion is weighted",
    )
    text_weight: Share = Field(
        _USUAL.text_weight,
        description="of the keywords' score, where fusion is weighted",
    )
    recency_enabled: bool = Field(
        _USUAL.recency, description="let the scores of dated pieces sink with age"
    )
    half_life_days: float = Field(
        _USUAL.half_life_days,
        gt=0,
        description="after how many days half of what age can take is gone",
    )
    recency_floor: Share = Field(
        _USUAL.recency_floor,
        description="what is left of the score of the oldest; 0: nothing",
    )
    mmr_enabled: bool = Field(_USUAL.mmr, description="move near copies of better hits down")
    mmr_lambda: Share = Field(
        _USUAL.mmr_lambda,
        description="1: only how well a hit fits counts; 0: only how new it is",
    )
    newest_first: bool = Field(
        _USUAL.newest_first,
        description="of hits that say different values of the same thing the newest leads",
    )
    min_score: Share = Field(_USUAL.min_score, description="hits below this score are not shown")
    least_confidence: Share = Field(
        _USUAL.least_confidence,
        description="a search less confident that it has found an answer says that nothing fits",
    )
    chatter_share: float = Field(
        _USUAL.chatter,
        gt=0,
        le=1,
        description="of the first hits, from transcripts while notes are nearly as good; 1: all",
    )
    max_tokens: int = Field(
        0, ge=0, description="of all hits of a search together; 0: as many as they have"
    )
    query_timeout_ms: int = Field(
        500, ge=1, description="longer than this a search does not wait for a vector of its words"
    )

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not self.vector_weight and not self.text_weight:
            msg = "vector_weight and text_weight are both 0; let at least one of them count"
            raise ValueError(msg)
        return self

    def options(self, query: SearchQuery, today: date) -> SearchOptions:
        """Return the options of one search: the query's own choices, and these settings for the
        rest.
        """
        alone = not self.hybrid_enabled
        fusion, recency, days = query.fusion, query.recency, query.half_life_days
        least = query.min_score
        return SearchOptions(
            limit=query.limit,
            max_tokens=query.max_tokens or self.max_tokens or None,
            min_score=self.min_score if least is None else least,
            sources=query.sources,
            today=today,
            fusion=Fusion.WEIGHTED if alone else fusion or self.fusion,
            gate=not alone,
            vector_weight=1.0 if alone else self.vector_weight,
            text_weight=0.0 if alone else self.text_weight,
            recency=self.recency_enabled if recency is None else recency,
            half_life_days=self.half_life_days if days is None else days,
            recency_floor=self.recency_floor,
            mmr=self.mmr_enabled,
            mmr_lambda=self.mmr_lambda,
            least_confidence=self.least_confidence,
            newest_first=self.newest_first,
            chatter=self.chatter_share,
        )
