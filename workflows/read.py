"""The one way to read what is not hot: a workflow of one activity, for any client."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import RawValue

from .decode import MISSING, decode
from .failures import refusing
from .pages import Page, Read
from .policies import READ
from .ports import StorePort


@workflow.defn(name="GMIRead", sandboxed=False)
class GMIRead:
    """Reads a page of the store; works on closed sessions and adds nothing to their history."""

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> Page:
        """Read one page."""
        with refusing():
            request = decode(raw, Read)
            return await self._read(request)

    async def _read(self, request: Read) -> Page:
        return await workflow.execute_activity_method(
            StorePort.read, request, summary=f"read {request.what}", **READ
        )
