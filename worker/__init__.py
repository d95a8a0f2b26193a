"""The edges: settings, client, plugin, worker, command line."""

from ..personas.errors import GMIError
from ..personas.memory_health import MemoryHealth
from ..personas.mind import Mind
from ..personas.options import CompletionOptions
from ..personas.prospective import Intention
from ..workflows.intention_calls import IntentionAck
from ..workflows.memory import MaintenanceReport
from ..workflows.mind_calls import FeedbackAck, MindShown, Reflected
from ..workflows.session_records import SessionConfig
from ..workflows.turns import HostResult
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
    "CompletionOptions",
    "FeedbackAck",
    "GMIError",
    "GMIPlugin",
    "HeldItem",
    "HostResult",
    "Intention",
    "IntentionAck",
    "MaintenanceReport",
    "MemoryClient",
    "MemoryHealth",
    "Mind",
    "MindShown",
    "PendingActivity",
    "Reflected",
    "Session",
    "SessionConfig",
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
