"""Care for memories: a workflow of one activity, for any client."""

from __future__ import annotations

import asyncio
import contextlib

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import FailureError

from .decode import MISSING, decode
from .failures import refusing
from .memory import Care, CareAnswer
from .mind_calls import WORDS_FORGOTTEN, WordsForgotten
from .policies import READ
from .ports import MemoryPort
from .state import WORKFLOW_PREFIX


@workflow.defn(name="GMIMemory", sandboxed=False)
class GMIMemory:
    """Looks at memories, puts one in, corrects or erases some."""

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> CareAnswer:
        """Do what is asked, once however often the activity is attempted."""
        with refusing():
            answer = await self._care(timed(decode(raw, Care)))
            if answer.forgotten and workflow.patched("tell-sessions"):
                told = (tell(key, turns) for key, turns in answer.forgotten.items())
                await asyncio.gather(*told)
            return answer.model_copy(update={"forgotten": {}})

    async def _care(self, request: Care) -> CareAnswer:
        return await workflow.execute_activity_method(
            MemoryPort.care, request, summary=f"{request.kind} memories", **READ
        )


async def tell(key: str, turns: list[str]) -> None:
    """Tell a session that runs which turns its mind shall forget the words of.

    One that does not run goes on from the store, which has forgotten them.
    """
    session_id = key.rpartition("~")[0]
    handle = workflow.get_external_workflow_handle(WORKFLOW_PREFIX + session_id)
    with contextlib.suppress(FailureError):
        await handle.signal(WORDS_FORGOTTEN, WordsForgotten(session=key, turns=turns))


def timed(request: Care) -> Care:
    """The request with the workflow's clock and id where the caller gave none."""
    return request.model_copy(
        update={
            "now": workflow.now().timestamp() if request.now is None else request.now,
            "request_id": request.request_id or workflow.info().workflow_id,
        }
    )
