"""The outside world: model providers, tools, the store.

The store is at :mod:`gmi.activities.store`; whoever only writes tools need not load it.
"""

from .tools import ToolContext, ToolRegistry, external_tool, remote_tool, tool

__all__ = ["ToolContext", "ToolRegistry", "external_tool", "remote_tool", "tool"]
