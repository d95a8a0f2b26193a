"""Long-term memory: what is encoded, how it fades, how it is found again.

What a host may bring along is exported here.
"""

from .provider import ContextRequest, MemoryProvider, Observation, Reranker

__all__ = ["ContextRequest", "MemoryProvider", "Observation", "Reranker"]
