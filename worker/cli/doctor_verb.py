"""The verb doctor: what works, what does not, and what to do about it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    GetSystemInfoRequest,
)
from temporalio.service import RPCError

from ...activities.gateway.registry import KNOWN_PROVIDERS
from ...personas.errors import GMIError, PersonaInvalidError
from ...personas.issues import Severity
from ...personas.loader import PersonaCatalog
from ..client import Client, missing_search_attributes
from ..dev_server import SEARCH_ATTRIBUTE_TYPES
from ..settings import Settings
from .answering import NO_KEY, answering
from .arguments import Context, Grammar
from .connecting import connected
from .exit_codes import SERVER_UNREACHABLE, ExitCode
from .workers import ROUND_TRIP_SECONDS, heard_of, polling_workers, round_trip

State = Literal["ok", "warning", "failed", "note"]

DYNAMIC_CONFIG = """\
The API does not tell these two; `gmi dev` sets both. Elsewhere add them to the server's dynamic \
configuration file (or ask who runs it):
  history.maxInFlightUpdates: [{value: 1000}]
    A session takes 10 open updates by default, and each program that follows a running turn \
holds one. The eleventh waits, without an error. With more than a few followers a session, raise it.
  history.timerProcessorMaxTimeShift: [{value: "10ms"}]
    Timers below a second fire after a second by default, so each change to a fallback model costs \
a second more. With 10ms it costs 11 ms."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing.

    Attributes:
        name: What was checked.
        state: Whether it works; a warning does not fail the check-up.
        found: What was found.
        fix: What to do, or ``""``.
    """

    name: str
    state: State
    found: str
    fix: str = ""


def add(grammar: Grammar) -> None:
    """Add the verb."""
    grammar.verb(
        "doctor", doctor, "Check the server, the workers, the store, the personas and the models."
    )


async def doctor(context: Context) -> int:
    """Check everything; exit code 3 without a server, 1 when something else fails."""
    code = ExitCode.OK
    findings: list[Finding] = []
    try:
        client = await connected(context)
    except GMIError as error:
        findings.append(Finding("server", "failed", error.message))
        code = ExitCode.NO_SERVER if error.code == SERVER_UNREACHABLE else ExitCode.FAILED
    else:
        findings.extend(await _server(client))
    findings.append(Finding("dynamic configuration", "note", DYNAMIC_CONFIG))
    findings.append(await _store(context.settings))
    findings.append(_providers(context.settings))
    findings.extend(await _personas(context.settings))
    if code == ExitCode.OK and any(found.state == "failed" for found in findings):
        code = ExitCode.FAILED
    if context.output.as_json:
        context.output.json([asdict(found) for found in findings])
        return code
    for found in findings:
        context.output.text(f"{found.state:<8} {found.name}: {found.found}")
        if found.fix:
            context.output.text(f"         {found.fix}")
    return code


async def _server(client: Client) -> list[Finding]:
    temporal = client.temporal
    address = temporal.service_client.config.target_host
    info = await temporal.workflow_service.get_system_info(GetSystemInfoRequest())
    findings = [Finding("server", "ok", f"{address}, version {info.server_version}")]
    try:
        await temporal.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=temporal.namespace)
        )
    except RPCError as error:
        fix = f"temporal operator namespace create --address {address} -n {temporal.namespace}"
        findings.append(Finding("namespace", "failed", f"{temporal.namespace}: {error}", fix))
        return findings
    findings.append(Finding("namespace", "ok", temporal.namespace))
    findings.append(await _search_attributes(client, address))
    findings.append(await _workers(client))
    return findings


async def _search_attributes(client: Client, address: str) -> Finding:
    temporal = client.temporal
    try:
        missing = await missing_search_attributes(temporal)
    except RPCError as error:
        return Finding("search attributes", "warning", f"cannot be listed: {error}")
    if not missing:
        return Finding("search attributes", "ok", ", ".join(SEARCH_ATTRIBUTE_TYPES))
    words = " ".join(f"--name {name} --type {SEARCH_ATTRIBUTE_TYPES[name]}" for name in missing)
    return Finding(
        "search attributes",
        "warning",
        f"missing: {', '.join(missing)}; sessions work, but cannot be listed by persona or user",
        f"temporal operator search-attribute create --address {address} "
        f"-n {temporal.namespace} {words}",
    )


async def _workers(client: Client) -> Finding:
    start = "start one with `gmi worker`, or name another queue with --task-queue"
    listed = await polling_workers(client)
    if not listed:
        return Finding(
            "workers", "failed", f"none polls the task queue {client.task_queue!r}", start
        )
    seconds = await round_trip(client)
    if seconds is not None:
        return Finding(
            "workers",
            "ok",
            f"one answered on {client.task_queue!r} within {seconds:.2f} s; listed: "
            f"{heard_of(listed)}",
        )
    return Finding(
        "workers",
        "failed",
        f"none answered on {client.task_queue!r} within {ROUND_TRIP_SECONDS:.0f} s; listed: "
        f"{heard_of(listed)}; one that ended is listed for up to 90 s",
        f"{start}; where one runs, its log says what it waits for",
    )


async def _store(settings: Settings) -> Finding:
    # Here, since a database library costs every command half a second.
    from ...activities.store import open_store
    from ...activities.store.engine import database_url

    try:
        url = database_url(settings.database_url)
        shown = url.render_as_string(hide_password=True)
        if url.drivername.startswith("sqlite") and not _exists(url.database):
            return Finding("store", "ok", f"{shown}; the first worker makes it")
        async with open_store(settings.database_url, migrate=False) as store:
            await store.ping()
    except GMIError as error:
        return Finding("store", "failed", error.message, "check GMI_DATABASE_URL")
    return Finding("store", "ok", shown)


def _exists(file: str | None) -> bool:
    """Whether the database's file is there; it must not be made by looking."""
    return Path(file or "").exists()


def _providers(settings: Settings) -> Finding:
    named = [
        name
        for name, known in KNOWN_PROVIDERS.items()
        if any(key in settings.providers for key in (*known.key_settings, *known.url_settings))
    ]
    if named:
        return Finding("providers", "ok", ", ".join(named))
    return Finding("providers", "warning", "none is set up", NO_KEY)


_STATES: dict[Severity, State] = {"error": "failed", "warning": "warning", "suggestion": "note"}


async def _personas(settings: Settings) -> list[Finding]:
    """What validation finds in a worker's personas, and who answers by default."""
    # Here, since it loads all that a worker needs, and every command would wait for it.
    from ..services import load_personas

    try:
        # The worker's tools are imported for it, and may print; stdout is the result's.
        with redirect_stdout(sys.stderr):
            catalog = await load_personas(settings)
    except PersonaInvalidError as error:
        where = str(settings.personas) if settings.personas else "the built-in ones"
        sources = ", ".join(error.details["sources"])
        return [
            Finding("personas", "failed", f"{where}: errors in {sources}; no worker starts"),
            *(
                _issue(issue["source"], issue["severity"], issue["code"], issue["message"])
                for issue in error.details["issues"]
            ),
        ]
    except GMIError as error:
        return [Finding("personas", "failed", error.message, "check GMI_PERSONAS and GMI_TOOLS")]
    return [
        Finding("personas", "ok", ", ".join(catalog.ids)),
        *(
            _issue(persona, issue.severity, issue.code, issue.message)
            for persona, report in sorted(catalog.reports.items())
            for issue in report.issues
        ),
        *(
            Finding(f"persona {persona}", "warning", remark)
            for persona, found in sorted(catalog.remarks.items())
            for remark in found
        ),
        await _model(settings, catalog),
    ]


def _issue(source: str, severity: Severity, code: str, message: str) -> Finding:
    return Finding(f"persona {source}", _STATES[severity], f"{code}: {message}")


async def _model(settings: Settings, catalog: PersonaCatalog) -> Finding:
    who = await answering(settings, catalog)
    found = f"persona {who.persona} gets {who.model or 'none'}, as this environment is"
    if who.problem is not None:
        return Finding("model", "failed", f"{found}; its turns will fail", who.problem)
    return Finding("model", "warning" if who.offline else "ok", found)
