"""The verb replay: whether this version's workflow code still fits recorded histories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from ...personas.errors import ValidationError
from ...workflows.state import WORKFLOW_PREFIX
from ..plugin import GMIPlugin
from .arguments import Context, Grammar
from .connecting import connected
from .exit_codes import ExitCode, UsageError


def add(grammar: Grammar) -> None:
    """Add the verb."""
    parser = grammar.verb(
        "replay", replay, "Replay recorded histories; exit code 1 when the code does not fit."
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="a history as JSON, as `temporal workflow show --output json` prints it",
    )
    parser.add_argument("-w", "--workflow-id", help="replay this workflow's history")
    parser.add_argument("--session", help="replay this session's history")


async def replay(context: Context) -> int:
    """Replay each history."""
    args = context.args
    histories = [_history(path, path.read_text()) for path in args.files]
    workflow = args.workflow_id or (args.session and f"{WORKFLOW_PREFIX}{args.session}")
    if workflow:
        client = await connected(context)
        handle = client.temporal.get_workflow_handle(workflow)
        histories.append((workflow, await handle.fetch_history()))
    if not histories:
        raise UsageError("Name what to replay: FILE, --workflow-id or --session.")
    replayer = Replayer(workflows=[], plugins=[GMIPlugin(context.settings)])
    code = ExitCode.OK
    for name, history in histories:
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        problem = None if result.replay_failure is None else str(result.replay_failure)
        if problem is not None:
            code = ExitCode.FAILED
        if context.output.as_json:
            events = len(history.events)
            context.output.json({"name": name, "events": events, "problem": problem})
        else:
            context.output.text(f"{name}: {problem or 'fits'}")
    return code


def _history(path: Path, text: str) -> tuple[str, WorkflowHistory]:
    try:
        history = WorkflowHistory.from_json(path.stem, text)
        # The id is part of what is replayed: a session checks that it is its own.
        started = history.events[0].workflow_execution_started_event_attributes
        return str(path), replace(history, workflow_id=started.workflow_id or path.stem)
    except Exception as error:
        raise ValidationError(f"{path} is not a workflow's history in JSON: {error}") from error
