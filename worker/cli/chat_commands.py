"""The commands of a chat, each a word after a slash."""

from __future__ import annotations

from ..session import Session
from .output import Output, shortened, spent
from .reading_verbs import TRACE_COLUMNS, is_cut, trace_row

HELP = (
    ("/trace [n]", "the last n entries of what the session did and why (20)"),
    ("/turns", "the last turns"),
    ("/persona [id]", "which persona speaks, or another one from now on"),
    ("/usage", "tokens and cost so far"),
    ("/stop", "stop whatever waits or is queued"),
    ("/help", "this list"),
    ("/quit", "end the chat; the session stays, and the next chat goes on with it"),
    ("Ctrl-C", "stop the running turn; at the prompt, end the chat"),
)


async def run_command(session: Session, out: Output, line: str) -> None:
    """Run one command line of the chat."""
    name, _, rest = line.partition(" ")
    argument = rest.strip()
    if name == "/help":
        out.table(("command", "what it does"), HELP)
    elif name == "/trace":
        last = int(argument) if argument.isdigit() and int(argument) else 20
        entries = await session.get_reasoning_trace()
        shown = entries[-last:]
        out.table(TRACE_COLUMNS, [trace_row(entry) for entry in shown])
        if any(is_cut(entry) for entry in shown):
            out.note(f"… marks a cut; `gmi trace {session.id} --full` shows everything")
    elif name == "/turns":
        found = await session.list_turns()
        out.table(
            ("turn", "status", "tokens", "said"),
            [
                (card.turn, card.status, card.usage.total_tokens, shortened(card.preview, 60))
                for card in found.turns
            ],
        )
    elif name == "/persona":
        if argument:
            out.note(f"persona {(await session.refresh_persona(argument)).persona}")
        else:
            persona = await session.get_persona()
            out.note(f"{persona.id}: {persona.name}. {persona.description}")
    elif name == "/usage":
        view = await session.usage()
        rows = [(model, spent(used)) for model, used in view.by_model.items()]
        out.table(("model", "used"), [*rows, ("all", spent(view.usage))])
    elif name == "/stop":
        await session.stop()
        out.note("stopped")
    else:
        out.note(f"There is no command {name}; /help lists them.")
