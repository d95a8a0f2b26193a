"""What happens: the workflows, what crosses their handlers, and their ports."""

from ..personas.errors import GMIError
from ..personas.options import CompletionOptions
from .chunks import CHUNK_SIGNAL, CHUNK_TOPIC, Chunk, ChunkBatch, ChunkItem
from .consolidation import GMIConsolidation
from .keep import GMIKeep
from .memory_care import GMIMemory
from .ports import MemoryPort, ModelPort, StorePort, implements
from .read import GMIRead
from .session import GMISession
from .session_records import SessionConfig
from .state import SessionStart, SessionState
from .turns import HostResult

__all__ = [
    "CHUNK_SIGNAL",
    "CHUNK_TOPIC",
    "Chunk",
    "ChunkBatch",
    "ChunkItem",
    "CompletionOptions",
    "GMIConsolidation",
    "GMIError",
    "GMIKeep",
    "GMIMemory",
    "GMIRead",
    "GMISession",
    "HostResult",
    "MemoryPort",
    "ModelPort",
    "SessionConfig",
    "SessionStart",
    "SessionState",
    "StorePort",
    "implements",
]
