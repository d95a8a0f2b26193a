"""The outside world: model providers, tools, the store."""

from .store import Store, open_store
from .tools import ToolContext, ToolRegistry, external_tool, remote_tool, tool

__all__ = [
    "Store",
    "ToolContext",
    "ToolRegistry",
    "external_tool",
    "open_store",
    "remote_tool",
    "tool",
]
