"""The edges: settings, client, plugin, worker, command line."""

from .client import Client, SessionInfo
from .connection import connect
from .learning import create_learning_layer
from .memory import MemoryClient, SessionMemory
from .plugin import GMIPlugin
from .session import Session
from .session_chat import ChatResult
from .session_mind import HeldItem, WorkingMemorySnapshot
from .settings import Settings
from .status import PendingActivity, SessionStatus
from .turn_stream import Transcript, TurnStream

__all__ = [
    "ChatResult",
    "Client",
    "GMIPlugin",
    "HeldItem",
    "MemoryClient",
    "PendingActivity",
    "Session",
    "SessionInfo",
    "SessionMemory",
    "SessionStatus",
    "Settings",
    "Transcript",
    "TurnStream",
    "WorkingMemorySnapshot",
    "connect",
    "create_learning_layer",
]
