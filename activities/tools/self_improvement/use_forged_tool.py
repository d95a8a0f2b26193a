"""The tool that calls what :mod:`.forge_tool` made."""

from __future__ import annotations

from typing import Any

from ....personas.errors import ToolError
from ....personas.self_changes import latest
from ....workflows.steps import ToolOutcome
from ..context import ToolContext
from .asking import Parts, asking
from .forging import read_implementation, work_out
from .names import USE_FORGED_TOOL


class UseForgedTool:
    """Serves :data:`~.names.USE_FORGED_TOOL`.

    Args:
        parts: What the tools share.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self, name: str, input: dict[str, Any], context: ToolContext) -> ToolOutcome:
        """Call a tool that you made with forge_tool.

        Args:
            name: Its name.
            input: Its input.
            context: Where the call stands.
        """
        ask = await asking(USE_FORGED_TOOL, self._parts, context)
        forged = latest(await ask.standing(["tool"]), "tool")
        found = forged.get(name)
        if found is None:
            known = ", ".join(forged) or "none"
            raise ToolError(f"there is no forged tool {name[:80]!r}; there are: {known}")
        made = read_implementation(USE_FORGED_TOOL, found.data["implementation"])
        given, result = found.data["inputSchema"], found.data["outputSchema"]
        return ToolOutcome(value=await work_out(ask, made, input, given, result))
