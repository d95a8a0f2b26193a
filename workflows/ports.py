"""The ports: every activity that a session calls, as an abstract method.

The workflow names these methods; :mod:`gmi.activities` implements them. Activity names are
persisted data: they carry no version and never change.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar, get_type_hints

from temporalio import activity

from .memory import Care, CareAnswer, Encode, Encoded, Maintain, MaintenanceReport
from .model_calls import CallResult, ModelCall
from .pages import Page, Read
from .session_records import Frozen, OpenedSession, OpenSession, RefreshInput, SaveSession
from .steps import RunStep, StepResult
from .writes import (
    BlobRefs,
    CloseTurn,
    Done,
    ImportHistory,
    ImportResult,
    KeepIntentions,
    KeepMind,
    Kept,
    KnownOutput,
    KnownTurn,
    PutBlobs,
)

T = TypeVar("T")


class ModelPort(ABC):
    """Model calls."""

    @abstractmethod
    @activity.defn(name="gmi.model.run_step")
    async def run_step(self, request: RunStep) -> StepResult:
        """Record what is new, ask the model once, record its reply."""

    @abstractmethod
    @activity.defn(name="gmi.model.call")
    async def call(self, request: ModelCall) -> CallResult:
        """Ask a model something beside the turns, and read its answer."""


class MemoryPort(ABC):
    """Long-term memory."""

    @abstractmethod
    @activity.defn(name="gmi.memory.encode")
    async def encode(self, request: Encode) -> Encoded:
        """Make a done turn into memories, and apply what its recall changes; once."""

    @abstractmethod
    @activity.defn(name="gmi.memory.maintain")
    async def maintain(self, request: Maintain) -> MaintenanceReport:
        """Tidy a persona's memories: prune, shrink, calm, cluster, link, embed."""

    @abstractmethod
    @activity.defn(name="gmi.memory.care")
    async def care(self, request: Care) -> CareAnswer:
        """Look at memories, put one in, correct or erase some."""


class StorePort(ABC):
    """The store of content."""

    @abstractmethod
    @activity.defn(name="gmi.store.open_session")
    async def open_session(self, request: OpenSession) -> OpenedSession:
        """Find or make the session's row, and freeze its persona and tools."""

    @abstractmethod
    @activity.defn(name="gmi.store.refresh_persona")
    async def refresh_persona(self, request: RefreshInput) -> Frozen:
        """Freeze another persona, or a newer version, for the turns to come."""

    @abstractmethod
    @activity.defn(name="gmi.store.close_turn")
    async def close_turn(self, request: CloseTurn) -> Done:
        """Record how a turn ended."""

    @abstractmethod
    @activity.defn(name="gmi.store.import_history")
    async def import_history(self, request: ImportHistory) -> ImportResult:
        """Record a given history as a new root turn."""

    @abstractmethod
    @activity.defn(name="gmi.store.put_blobs")
    async def put_blobs(self, request: PutBlobs) -> BlobRefs:
        """Keep large values under their digests."""

    @abstractmethod
    @activity.defn(name="gmi.store.save_session")
    async def save_session(self, request: SaveSession) -> Done:
        """Record that the session is released or closed."""

    @abstractmethod
    @activity.defn(name="gmi.store.keep_mind")
    async def keep_mind(self, request: KeepMind) -> Kept:
        """Keep the mind that a turn left."""

    @abstractmethod
    @activity.defn(name="gmi.store.known_turn")
    async def known_turn(self, request: KnownTurn) -> KnownOutput:
        """Look up what a turn came to that may have been made before."""

    @abstractmethod
    @activity.defn(name="gmi.store.keep_intentions")
    async def keep_intentions(self, request: KeepIntentions) -> Done:
        """Keep what the session means to do later."""

    @abstractmethod
    @activity.defn(name="gmi.store.read")
    async def read(self, request: Read) -> Page:
        """Read a page of what the store holds."""


def implements(port: type[ABC]) -> Callable[[type[T]], type[T]]:
    """Class decorator: gives each override of a port's method the port's activity definition.

    Args:
        port: The port that the class implements.

    Raises:
        TypeError: A method is missing, or takes or returns something else.
    """

    def decorate(cls: type[T]) -> type[T]:
        for name, declared in inspect.getmembers(port, inspect.isfunction):
            definition = getattr(declared, "__temporal_activity_definition", None)
            if definition is None:
                continue
            override = cls.__dict__.get(name)
            if override is None:
                raise TypeError(f"{cls.__name__} does not implement {port.__name__}.{name}")
            if get_type_hints(override) != get_type_hints(declared):
                raise TypeError(
                    f"{cls.__name__}.{name} has another signature than {port.__name__}.{name}"
                )
            activity.defn(name=definition.name)(override)
        return cls

    return decorate
