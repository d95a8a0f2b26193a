"""What happens: the session workflow, its wire models and its ports."""

from .chunks import CHUNK_SIGNAL, CHUNK_TOPIC, Chunk, ChunkBatch, ChunkItem
from .keep import GMIKeep
from .ports import ModelPort, StorePort, implements
from .read import GMIRead
from .session import GMISession
from .session_records import SessionConfig
from .state import SessionStart, SessionState

__all__ = [
    "CHUNK_SIGNAL",
    "CHUNK_TOPIC",
    "Chunk",
    "ChunkBatch",
    "ChunkItem",
    "GMIKeep",
    "GMIRead",
    "GMISession",
    "ModelPort",
    "SessionConfig",
    "SessionStart",
    "SessionState",
    "StorePort",
    "implements",
]
