"""Asking the person in the terminal for what a turn waits for."""

from __future__ import annotations

from ...workflows.turns import HostResult, ToolCallView
from .output import Output, printable, shortened


class Declined(Exception):
    """The person did not answer: the input ended, or Ctrl-C was pressed."""


def ask(out: Output, call: ToolCallView) -> HostResult:
    """Ask for one call's answer.

    Raises:
        Declined: There is no answer.
    """
    try:
        if call.reason == "approval":
            return _approval(out, call)
        if call.reason == "lost":
            return _lost(out, call)
        return _result(out, call)
    except (EOFError, KeyboardInterrupt):
        out.console.print()
        raise Declined from None


def _result(out: Output, call: ToolCallView) -> HostResult:
    question = call.arguments.get("question")
    shown = question if isinstance(question, str) else shortened(call.arguments, 2000)
    out.console.print(printable(f"{call.name}: {shown}"), style="bold", soft_wrap=True)
    return HostResult(call_id=call.id, content=input("answer> "))


def _approval(out: Output, call: ToolCallView) -> HostResult:
    shown = f"Run {call.name}({shortened(call.arguments, 2000)})?"
    out.console.print(printable(shown), style="bold", soft_wrap=True)
    said = input("y, or why not> ").strip()
    if said.lower() in ("y", "yes"):
        return HostResult(call_id=call.id, approved=True)
    reason = None if said.lower() in ("", "n", "no") else said
    return HostResult(call_id=call.id, approved=False, reason=reason)


def _lost(out: Output, call: ToolCallView) -> HostResult:
    shown = f"{call.name}({shortened(call.arguments, 2000)}) may have run; its worker was lost."
    out.console.print(printable(shown), style="bold", soft_wrap=True)
    said = input("its result, or r to run it again> ")
    if said.strip().lower() == "r":
        return HostResult(call_id=call.id, rerun=True)
    return HostResult(call_id=call.id, content=said)
