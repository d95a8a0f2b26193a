"""The edges: settings, client, plugin, worker, command line."""

from .client import Client, SessionInfo
from .connection import connect
from .plugin import GMIPlugin
from .session import Session
from .settings import Settings
from .turn_stream import Transcript, TurnStream

__all__ = [
    "Client",
    "GMIPlugin",
    "Session",
    "SessionInfo",
    "Settings",
    "Transcript",
    "TurnStream",
    "connect",
]
