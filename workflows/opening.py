"""Opening a session: a new one, or one that goes on where it was."""

from __future__ import annotations

from temporalio import workflow

from ..personas.errors import ValidationError
from ..personas.mind import Mind
from .decode import lenient
from .policies import STORE
from .ports import StorePort
from .requests import check_config, check_credentials
from .session_records import OpenedSession, OpenSession
from .state import WORKFLOW_PREFIX, SessionStart, SessionState
from .trace_log import TraceLog


async def open_session(start: SessionStart) -> SessionState:
    """Find or make the session's row, and build the state to run with.

    Raises:
        ActivityError: The persona, a tool, the model or the user does not fit; nothing was
            written.
        CredentialRefusedError: A raw key was sent.
        ValidationError: The workflow's id is another session's.
    """
    check_credentials(start.config.credentials)
    check_config(start.config)
    info = workflow.info()
    if info.workflow_id != WORKFLOW_PREFIX + start.session_id:
        raise ValidationError(
            f"The workflow {info.workflow_id!r} cannot serve session {start.session_id!r}; the "
            f"workflow's id has to be {WORKFLOW_PREFIX + start.session_id!r}."
        )
    opened = await workflow.execute_activity_method(
        StorePort.open_session,
        OpenSession(
            session_id=start.session_id,
            new_key=f"{start.session_id}~{info.run_id[-12:]}",
            expect_key=start.expect_key,
            user_id=start.user_id,
            org=start.org,
            persona=start.persona,
            config=start.config,
            now=workflow.now(),
            run=info.run_id,
        ),
        summary="open the session",
        **STORE,
    )
    return resumed(opened) if opened.state is not None else fresh(opened)


def resumed(opened: OpenedSession) -> SessionState:
    """The record that the idle session left behind."""
    state = lenient(opened.state, SessionState)
    state.run += 1
    state.counter = max(state.counter, opened.counter)
    TraceLog(state).add("LIFECYCLE", "The session goes on where it was.")
    return state


def fresh(opened: OpenedSession) -> SessionState:
    """A new session, or one whose workflow was ended from outside: it goes on from the store."""
    state = SessionState(
        session=opened.session,
        created_at=opened.created_at,
        config=opened.config,
        rules=opened.frozen.rules,
        persona_digest=opened.frozen.persona_digest,
        toolset_digest=opened.frozen.toolset_digest,
        counter=opened.counter,
        seq=opened.seq,
        trace_seq=opened.trace_seq,
        trace_flushed=opened.trace_seq,
        head=opened.head,
        usage=opened.usage,
        usage_by_model=opened.usage_by_model,
        turns=opened.turns,
        mind=opened.mind or Mind().noted(opened.frozen.rules.imprints),
        # Kept with a turn, so it was moved: by the persona's rules, or by the host.
        moved=opened.mind is not None,
        unencoded=opened.unremembered,
        intentions=opened.intentions.waiting,
        intention_digests=opened.intentions.digests,
        branch=opened.head_branch,
        depth=opened.head_depth,
    )
    log = TraceLog(state)
    log.add(
        "LIFECYCLE",
        f"The session opened with persona {opened.frozen.rules.persona}.",
        details={"persona_digest": opened.frozen.persona_digest},
    )
    for warning in opened.frozen.warnings:
        log.add("WARNING", warning)
    return state
