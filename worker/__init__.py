"""The edges: settings, client, plugin, worker, command line."""

from .client import Client, SessionInfo
from .connection import connect
from .plugin import GMIPlugin
from .session import Session
from .settings import Settings
from .status import PendingActivity, SessionStatus
from .turn_stream import Transcript, TurnStream

__all__ = [
    "Client",
    "GMIPlugin",
    "PendingActivity",
    "Session",
    "SessionInfo",
    "SessionStatus",
    "Settings",
    "Transcript",
    "TurnStream",
    "connect",
]
