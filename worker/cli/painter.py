"""Showing a turn in the terminal while it is made."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from ...workflows.chunks import Chunk
from ...workflows.turns import TurnOutput
from ..turn_stream import Transcript
from .output import printable, shortened, spent

LOST_WORKER = "the worker was lost; the step starts again"
MISSED = "some of the text was missed; here is all of it"


class Painter:
    """Prints a turn's chunks: its text plainly, everything around it dim.

    Args:
        console: Where to print.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.begin()

    def begin(self) -> None:
        """A turn begins; a turn that goes on after a pause does not begin again."""
        self._transcript = Transcript()
        self._asked: set[str] = set()
        self._line_open = False

    def take(self, chunk: Chunk) -> None:
        """Print the next chunk of the turn."""
        self._transcript.take(chunk)
        if chunk.type == "text_delta":
            self.text(chunk.content)
        elif chunk.type == "step_restarted":
            lost = (chunk.content or {}).get("reason") == "attempt"
            self.aside(LOST_WORKER if lost else MISSED)
        elif chunk.type == "tool_call_request":
            for call in chunk.content:
                self._called(call)
        elif chunk.type == "tool_result":
            sign = "✗" if chunk.content.get("is_error") else "←"
            said = shortened(chunk.content.get("result"))
            self.aside(f"{sign} {chunk.content.get('name')}: {said}")

    def finish(self, output: TurnOutput) -> None:
        """Complete the text from the turn's output, and print what it took."""
        whole = output.response_text or ""
        shown = self._transcript.text
        if whole.startswith(shown):
            self.text(whole[len(shown) :])
        elif whole and whole != shown:
            self.aside(MISSED)
            self.text(whole)
        self._transcript.replace(whole)
        self._end_line()
        if output.status == "failed" and output.error is not None:
            self._console.print(
                printable(f"error: {output.error.code}: {output.error.message}"),
                style="red",
                soft_wrap=True,
            )
        elif output.status in ("stopped", "abandoned"):
            self.aside(output.status)
        if output.is_final and output.model:
            self.aside(f"{output.provider}:{output.model} · {spent(output.usage)}")

    def text(self, text: str) -> None:
        """Print a piece of text."""
        shown = printable(text)
        if shown:
            self._console.print(shown, end="", soft_wrap=True)
            self._console.file.flush()
            self._line_open = not shown.endswith("\n")

    def aside(self, text: str) -> None:
        """Print a dim line of its own."""
        self._end_line()
        self._console.print(printable(text), style="dim", soft_wrap=True)

    def _called(self, call: dict[str, Any]) -> None:
        if call["id"] not in self._asked:
            self._asked.add(call["id"])
            self.aside(f"→ {call['name']}({shortened(call.get('arguments') or {})})")

    def _end_line(self) -> None:
        if self._line_open:
            self._console.print()
            self._line_open = False
