"""What happens: the session workflow, its wire models and its ports."""

from .chunks import CHUNK_SIGNAL, CHUNK_TOPIC, Chunk, ChunkBatch, ChunkItem
from .consolidation import GMIConsolidation
from .keep import GMIKeep
from .memory_care import GMIMemory
from .ports import MemoryPort, ModelPort, StorePort, implements
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
    "GMIConsolidation",
    "GMIKeep",
    "GMIMemory",
    "GMIRead",
    "GMISession",
    "MemoryPort",
    "ModelPort",
    "SessionConfig",
    "SessionStart",
    "SessionState",
    "StorePort",
    "implements",
]
