"""Tidying a persona's memories: a workflow of one activity, started by a schedule or by hand."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import RawValue

from .decode import MISSING, decode
from .failures import refusing
from .memory import Consolidate, Maintain, MaintenanceReport
from .policies import CONSOLIDATION
from .ports import MemoryPort


@workflow.defn(name="GMIConsolidation", sandboxed=False)
class GMIConsolidation:
    """Tidies the memories of one persona and answers with what it did."""

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> MaintenanceReport:
        """Tidy once."""
        with refusing():
            request = decode(raw, Consolidate)
            now = request.now if request.now is not None else workflow.now().timestamp()
            workflow.set_current_details(f"Tidying the memories of `{request.persona}`.")
            report: MaintenanceReport = await workflow.execute_activity_method(
                MemoryPort.maintain,
                # A run that is reset or started again tidies anew.
                Maintain(persona=request.persona, now=now, run=workflow.info().run_id),
                summary=f"tidy the memories of {request.persona}",
                **CONSOLIDATION,
            )
            workflow.set_current_details(details(report))
            return report


def details(report: MaintenanceReport) -> str:
    """A report for people, as Markdown."""
    counts = {
        name.replace("_", " "): value
        for name, value in report
        if isinstance(value, int) and value and name not in ("scopes", "traces")
    }
    lines = [
        f"Looked at {report.traces} memories in {report.scopes} scopes.",
        *(f"- {name}: {value}" for name, value in counts.items()),
        *(f"- WARNING {warning}" for warning in report.warnings),
    ]
    return "\n".join(lines)
