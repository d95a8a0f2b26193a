"""What commands print: text and tables for people, JSON for programs, errors on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...personas.errors import GMIError
from ...personas.messages import Usage
from .exit_codes import hint

# What a terminal would obey: a model's text must not move the cursor, set the title or turn the
# direction of writing around. Halves of surrogate pairs cannot be printed at all.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Output:
    """Prints results on stdout and everything else on stderr.

    Args:
        as_json: Results and errors are JSON values, each on a line of its own.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False, markup=False, emoji=False)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def json(self, value: Any) -> None:
        """Print a JSON value on one line."""
        print(_json(value), flush=True)

    def document(self, value: Any) -> None:
        """Print a JSON value for whoever reads: indented in a terminal, else on one line."""
        if self.as_json or not sys.stdout.isatty():
            self.json(value)
        else:
            self.text(json.dumps(value, ensure_ascii=False, indent=2))

    def text(self, text: str) -> None:
        """Print a text as it is, without what a terminal would obey."""
        print(printable(text), flush=True)

    def note(self, text: str) -> None:
        """Tell a person something beside the result; programs get nothing."""
        if not self.as_json:
            self._notes.print(printable(text), style="dim", soft_wrap=True)

    def error(self, error: GMIError) -> None:
        """Tell about an error, and a person also what the command line has for it."""
        if self.as_json:
            shown = {"code": error.code, "message": error.message, "details": error.details}
            print(_json({"error": shown}), file=sys.stderr)
        else:
            print(f"error: {error.code}: {printable(error.message)}", file=sys.stderr)
            told = hint(error)
            if told is not None:
                print(f"hint: {told}", file=sys.stderr)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows: aligned in a terminal, tab-separated in a pipe."""
        cells = [[one_line(str(cell)) for cell in row] for row in rows]
        if not self.console.is_terminal:
            for line in (list(columns), *cells):
                print("\t".join(line))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for line in cells:
            table.add_row(*(Text(cell) for cell in line))
        self.console.print(table)


def printable(text: str) -> str:
    """The text without control characters, but with line feeds and tabs.

    Those that set the direction of writing are such characters too.
    """
    return _CONTROL.sub("", text)


def _json(value: Any) -> str:
    """A JSON value; what a terminal would obey is written as an escape, which is the same value."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The text on one line."""
    return " ".join(printable(text).split())


def shortened(value: Any, limit: int | None = 120) -> str:
    """A JSON value on one line of at most ``limit`` characters; an ellipsis marks a cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = one_line(text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def spent(usage: Usage) -> str:
    """Tokens and cost in words."""
    tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens"
    return tokens if usage.cost_usd is None else f"{tokens} · ${usage.cost_usd:.4f}"
