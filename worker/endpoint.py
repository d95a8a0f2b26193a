"""What a client reaches the workers by: a server, a queue, and the store behind them."""

from __future__ import annotations

import uuid

import temporalio.client

from ..workflows.pages import Page, Read
from .calls import calling
from .feed import Feeds
from .settings import TASK_QUEUE


class Endpoint:
    """The workers that serve sessions, as a client sees them.

    Args:
        temporal: A client that carries :class:`~gmi.worker.GMIPlugin`.
        task_queue: The queue of the workers that serve sessions.
        search_attributes: Whether the namespace has the project's search attributes.

    Attributes:
        temporal: The Temporal client.
        feeds: The chunk streams that this client reads.
    """

    def __init__(
        self,
        temporal: temporalio.client.Client,
        *,
        task_queue: str = TASK_QUEUE,
        search_attributes: bool = False,
    ) -> None:
        self.temporal = temporal
        self.task_queue = task_queue
        self.search_attributes = search_attributes
        self.feeds = Feeds(temporal)

    async def read(self, request: Read) -> Page:
        """Read a page of the store through a worker."""

        async def call() -> Page:
            page: Page = await self.temporal.execute_workflow(
                "GMIRead",
                request,
                id=f"gmi-read-{uuid.uuid4()}",
                task_queue=self.task_queue,
                result_type=Page,
            )
            return page

        return await calling(call)
