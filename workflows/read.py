"""The one way to read what is not hot: a workflow of one activity, for any client."""

from __future__ import annotations

from temporalio import workflow

from .pages import Page, Read
from .policies import READ
from .ports import StorePort


@workflow.defn(name="GMIRead", sandboxed=False)
class GMIRead:
    """Reads a page of the store; works on closed sessions and adds nothing to their history."""

    @workflow.run
    async def run(self, request: Read) -> Page:
        """Read one page."""
        return await workflow.execute_activity_method(
            StorePort.read, request, summary=f"read {request.what}", **READ
        )
