"""Care for memories: a workflow of one activity, for any client."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import RawValue

from .decode import MISSING, decode
from .failures import refusing
from .memory import Care, CareAnswer
from .policies import READ
from .ports import MemoryPort


@workflow.defn(name="GMIMemory", sandboxed=False)
class GMIMemory:
    """Looks at memories, puts one in, corrects or erases some."""

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> CareAnswer:
        """Do what is asked, once however often the activity is attempted."""
        with refusing():
            return await self._care(timed(decode(raw, Care)))

    async def _care(self, request: Care) -> CareAnswer:
        return await workflow.execute_activity_method(
            MemoryPort.care, request, summary=f"{request.kind} memories", **READ
        )


def timed(request: Care) -> Care:
    """The request with the workflow's clock and id where the caller gave none."""
    return request.model_copy(
        update={
            "now": workflow.now().timestamp() if request.now is None else request.now,
            "request_id": request.request_id or workflow.info().workflow_id,
        }
    )
