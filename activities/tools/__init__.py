from .builtin import BUILT_IN_TOOLS
from .context import ToolContext
from .registry import Tool, ToolRegistry, external_tool, remote_tool, tool, tool_of
from .runner import tool_activities

__all__ = [
    "BUILT_IN_TOOLS",
    "Tool",
    "ToolContext",
    "ToolRegistry",
    "external_tool",
    "remote_tool",
    "tool",
    "tool_activities",
    "tool_of",
]
