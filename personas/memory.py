"""What a persona remembers in the long term, and how: the settings of its memory.

Times are named with their unit; everything else is a share or a factor. The defaults of weights,
rates and thresholds are conventions that work well together, not measured constants of the mind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

ScopeName = Literal["user", "thread", "persona", "organization"]

DAY = 86_400.0

LONGEST_DAYS = 36_525.0
"""A hundred years. What is meant to be longer is in another unit, or never."""

MANY = 100_000
"""More than any number of memories or tokens that one step can look at."""

LARGE = 1000.0
"""A factor or a weight beyond it drowns everything else."""

_OTHERS_KEYS = frozenset({"conversationContext", "ragConfig", "lifecycleConfig"})


class MemoryModel(BaseModel):
    """Base of the memory's settings: immutable, in ``camelCase`` or ``snake_case``.

    Unknown keys are refused, and numbers that are not finite or beyond all use.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=to_camel,
        allow_inf_nan=False,
    )


class Reconsolidation(MemoryModel):
    """A recalled memory takes on a little of the present mood.

    Attributes:
        drift_rate: Share of the distance to the mood that one recall covers.
        max_drift_per_trace: Sum of all movements that a memory can make in its life.
        immune_above_importance: Memories of at least this importance never move; ``None``, and
            any value above 1, makes none immune.
    """

    enabled: bool = True
    drift_rate: float = Field(default=0.05, ge=0, le=1)
    max_drift_per_trace: float = Field(default=0.4, ge=0, le=LARGE)
    immune_above_importance: float | None = Field(default=None, ge=0, le=LARGE)


class RetrievalInducedForgetting(MemoryModel):
    """Memories like the recalled ones that were not recalled fade faster.

    Attributes:
        similarity_threshold: How like a recalled memory one must be to be suppressed.
        suppression_factor: Share of its stability that it loses.
        max_suppressions_per_query: Memories that one recall suppresses.
    """

    enabled: bool = True
    similarity_threshold: float = Field(default=0.7, ge=-1, le=1)
    suppression_factor: float = Field(default=0.12, ge=0, le=1)
    max_suppressions_per_query: int = Field(default=5, ge=0, le=MANY)


class InvoluntaryRecall(MemoryModel):
    """Now and then an old memory comes up by itself.

    Attributes:
        probability: Of one coming up in a recall.
        min_age_days: It must be older than this.
        min_strength: And have been encoded at least this strongly.
    """

    enabled: bool = True
    probability: float = Field(default=0.08, ge=0, le=1)
    min_age_days: float = Field(default=14, ge=0, le=LONGEST_DAYS)
    min_strength: float = Field(default=0.15, ge=0, le=1)


class FeelingOfKnowing(MemoryModel):
    """A memory that almost came up leaves the feeling that it is there.

    Attributes:
        partial_activation_threshold: Scores from here up to the worst recalled one count.
        surface_tip_of_tongue: Whether the weak feelings are told as well as the strong ones.
    """

    enabled: bool = True
    partial_activation_threshold: float = Field(default=0.3, ge=0, le=1)
    surface_tip_of_tongue: bool = True


class TemporalGist(MemoryModel):
    """Old memories shrink to what they were about.

    Attributes:
        rule: ``retrieved`` shrinks those that were recalled at least ``min_retrieval_count``
            times, which keeps the details of what was never asked for until it is pruned;
            ``seldom`` shrinks those recalled less often than that.
        age_threshold_days: Memories at least this old shrink.
        preserve_entities: Whether the gist keeps the entities.
        preserve_emotional_context: Whether the gist keeps the mood.
        max_per_cycle: Memories that one consolidation shrinks.
    """

    enabled: bool = True
    rule: Literal["retrieved", "seldom"] = "retrieved"
    age_threshold_days: float = Field(default=60, ge=0, le=LONGEST_DAYS)
    min_retrieval_count: int = Field(default=2, ge=0, le=MANY)
    preserve_entities: bool = True
    preserve_emotional_context: bool = True
    max_per_cycle: int = Field(default=20, ge=0, le=MANY)


class SchemaEncoding(MemoryModel):
    """What fits the known is encoded weaker, what is new stronger.

    Attributes:
        cluster_similarity_threshold: From this similarity on it fits a known cluster.
        novelty_boost: Factor of the strength of what fits none.
        congruency_discount: Factor of the strength of what fits.
    """

    enabled: bool = True
    cluster_similarity_threshold: float = Field(default=0.75, ge=-1, le=1)
    novelty_boost: float = Field(default=1.3, ge=0, le=LARGE)
    congruency_discount: float = Field(default=0.85, ge=0, le=LARGE)


DEFAULT_SOURCE_MULTIPLIERS: Mapping[str, float] = {
    "user_statement": 1.0,
    "tool_result": 1.0,
    "human_approval": 1.0,
    "identity_provider": 1.0,
    "system_config": 1.0,
    "observation": 0.95,
    "retrieved_document": 0.95,
    "external": 0.9,
    "external_api": 0.9,
    "fact_graph": 0.85,
    "typed_network": 0.85,
    "agent_inference": 0.8,
    "reflection": 0.75,
    "memory_summary": 0.75,
}


class SourceConfidenceDecay(MemoryModel):
    """What comes from a doubtful source fades faster.

    Attributes:
        rule: ``access`` shortens a memory's stability once after it was made and once after each
            recall; ``hourly`` once an hour, again and again, which leaves little of a reply after
            a day of hourly consolidations.
        decay_multipliers: Factor of the stability by source type, over the defaults; a source
            that has none keeps its stability.
    """

    enabled: bool = True
    rule: Literal["access", "hourly"] = "access"
    decay_multipliers: dict[str, float] = Field(
        default_factory=lambda: dict(DEFAULT_SOURCE_MULTIPLIERS)
    )

    @field_validator("decay_multipliers", mode="after")
    @classmethod
    def _over_the_defaults(cls, value: dict[str, float]) -> dict[str, float]:
        for source, factor in value.items():
            if not 0 < factor <= 1:
                raise ValueError(f"the multiplier of {source!r} is {factor}; give one in (0, 1]")
        return {**DEFAULT_SOURCE_MULTIPLIERS, **value}


class EmotionRegulation(MemoryModel):
    """Memories that agitate too much are calmed.

    Attributes:
        rule: ``arousal`` takes the memories whose arousal is above ``suppression_threshold``;
            ``valence`` those whose valence is further than that from 0 and whose arousal is
            above 0.6. Arousal counts from 0 (asleep) to 1 here.
        reappraisal_rate: Share of valence and arousal that one cycle takes away.
        suppression_threshold: See ``rule``.
        max_regulation_per_cycle: Memories that one consolidation calms.
    """

    enabled: bool = True
    rule: Literal["arousal", "valence"] = "arousal"
    reappraisal_rate: float = Field(default=0.15, ge=0, le=1)
    suppression_threshold: float = Field(default=0.8, ge=0, le=1)
    max_regulation_per_cycle: int = Field(default=10, ge=0, le=MANY)


class PersonaDrift(MemoryModel):
    """What was lived through suggests small changes of the traits; nothing applies them.

    Attributes:
        min_traces: Memories that a suggestion needs.
        max_delta: Largest suggested change of a trait.
    """

    enabled: bool = False
    min_traces: int = Field(default=10, ge=1, le=MANY)
    max_delta: float = Field(default=0.05, ge=0, le=1)


class MechanismSettings(MemoryModel):
    """The memory's mechanisms; without anything set, eight are on and the drift is off."""

    reconsolidation: Reconsolidation = Reconsolidation()
    retrieval_induced_forgetting: RetrievalInducedForgetting = RetrievalInducedForgetting()
    involuntary_recall: InvoluntaryRecall = InvoluntaryRecall()
    feeling_of_knowing: FeelingOfKnowing = FeelingOfKnowing()
    temporal_gist: TemporalGist = TemporalGist()
    schema_encoding: SchemaEncoding = SchemaEncoding()
    source_confidence_decay: SourceConfidenceDecay = SourceConfidenceDecay()
    emotion_regulation: EmotionRegulation = EmotionRegulation()
    persona_drift: PersonaDrift = PersonaDrift()

    @model_validator(mode="before")
    @classmethod
    def _other_name(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "metacognitiveFOK" in data:
            data = dict(data)
            data.setdefault("feelingOfKnowing", data.pop("metacognitiveFOK"))
        return data


class ScoreWeights(MemoryModel):
    """How much each part counts in a memory's score; they need not add up to 1."""

    similarity: float = Field(default=0.35, ge=0, le=LARGE)
    strength: float = Field(default=0.25, ge=0, le=LARGE)
    emotional_congruence: float = Field(default=0.15, ge=0, le=LARGE)
    recency: float = Field(default=0.10, ge=0, le=LARGE)
    graph_activation: float = Field(default=0.10, ge=0, le=LARGE)
    importance: float = Field(default=0.05, ge=0, le=LARGE)


class SpreadingSettings(MemoryModel):
    """How far a recalled memory wakes those linked with it.

    Attributes:
        seeds: Best memories that the activation starts from.
        max_depth: Links that it follows.
        decay_per_hop: Factor of the activation at each link.
        activation_threshold: Contributions below it are dropped.
        max_results: Memories that it wakes at most.
        hebbian_learning_rate: What a link between two memories gains when they are recalled
            together.
    """

    enabled: bool = True
    seeds: int = Field(default=5, ge=1, le=MANY)
    max_depth: int = Field(default=3, ge=0, le=10)
    decay_per_hop: float = Field(default=0.5, ge=0, le=1)
    activation_threshold: float = Field(default=0.1, ge=0, le=LARGE)
    max_results: int = Field(default=20, ge=0, le=MANY)
    hebbian_learning_rate: float = Field(default=0.1, ge=0, le=1)


class ConsolidationSettings(MemoryModel):
    """When a persona's memory is tidied.

    Attributes:
        interval: Seconds between two runs.
        max_traces: Memories of a scope that one run looks at; where there are more, the newest
            half of so many, and others in turn.
        model: ``provider:model`` that writes gists and schemas; without one a gist is a memory's
            beginning, and no schema is put into words.
        removal_days: Days after which a memory that was given up is deleted.
    """

    enabled: bool = True
    interval: float = Field(default=3600.0, ge=1, le=LONGEST_DAYS * DAY)
    max_traces: int = Field(default=500, ge=2, le=MANY)
    model: str | None = Field(default=None, min_length=1)
    removal_days: float = Field(default=30, ge=0, le=LONGEST_DAYS)


class DecaySettings(MemoryModel):
    """How memories fade and when they are given up.

    Attributes:
        base_stability: Seconds that the stability of a new memory starts from.
        pruning_threshold: A memory weaker than this is given up in a consolidation, unless its
            feeling was strong.
        keep_days: Days since its last recall in which no memory is given up, however weak: it
            counts less in a recall and can still be found. With 0 a plain memory that nobody
            recalls is gone after some ten hours.
    """

    base_stability: float = Field(default=3600.0, gt=0, le=LONGEST_DAYS * DAY)
    pruning_threshold: float = Field(default=0.05, ge=0, le=1)
    keep_days: float = Field(default=90, ge=0, le=LONGEST_DAYS)


class MemorySettings(MemoryModel):
    """How a persona remembers.

    Attributes:
        enabled: Whether it remembers beyond the conversation at all.
        token_budget: Tokens that remembered things may take in a prompt.
        top_k: Memories that one recall brings.
        weights: Parts of the score.
        hyde: Whether a model first imagines what the memory could say, to search with that.
        rerank: Whether a configured reranker has a say in the order.
        spreading: Activation along links.
        decay: Fading.
        consolidation: Tidying.
        embedding: The embedding model, ``provider:model``; ``None`` is the worker's.
        scopes: Whose memories a recall reads; none recalls nothing.
        purpose: Only memories that may be used for it come up; ``any`` brings up all.
        mechanisms: ``None`` runs none of them, ``{}`` all at their defaults.
    """

    enabled: bool = True
    token_budget: int = Field(default=1600, ge=0, le=MANY)
    top_k: int = Field(default=20, ge=1, le=200)
    weights: ScoreWeights = ScoreWeights()
    hyde: bool = False
    rerank: bool = False
    spreading: SpreadingSettings = SpreadingSettings()
    decay: DecaySettings = DecaySettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()
    embedding: str | None = Field(default=None, min_length=1)
    scopes: tuple[ScopeName, ...] = ("user", "thread", "persona", "organization")
    purpose: Literal["any", "personalization", "fact_claim", "authorization"] = "any"
    mechanisms: MechanismSettings | None = None

    @model_validator(mode="before")
    @classmethod
    def _other_name(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "cognitiveMechanisms" in data:
            data = dict(data)
            data.setdefault("mechanisms", data.pop("cognitiveMechanisms"))
        return data

    @field_validator("scopes", mode="after")
    @classmethod
    def _each_once(cls, value: tuple[ScopeName, ...]) -> tuple[ScopeName, ...]:
        return tuple(dict.fromkeys(value))

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | None) -> Self:
        """The settings in a persona's ``memoryConfig``.

        The keys there that configure something else (the conversation's length, retrieval from
        documents) are passed over. Where nothing is left the memory is off.

        Raises:
            pydantic.ValidationError: A key is unknown or a value is out of its range.
        """
        own = {
            key: value for key, value in (config or {}).items() if to_camel(key) not in _OTHERS_KEYS
        }
        return cls.model_validate(own) if own else cls(enabled=False)
