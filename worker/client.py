"""The client: opens sessions, lists them, reads the store through the workers."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import temporalio.client
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.service import RPCError

from ..personas.errors import MessageTooLargeError, ValidationError
from ..personas.messages import ImagePart
from ..workflows.search_attributes import PERSONA, SEARCH_ATTRIBUTES, USER
from ..workflows.session_records import SessionConfig
from ..workflows.state import WORKFLOW_PREFIX
from ..workflows.writes import BlobRefs, Keep
from .calls import calling
from .connection import connect
from .endpoint import Endpoint
from .memory import MemoryClient
from .plugin import GMIPlugin
from .session import Session
from .settings import TASK_QUEUE

MAX_KEPT_BYTES = 700_000
"""Bytes of an image that is kept in the store."""

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as Temporal lists it."""

    session_id: str
    workflow_id: str
    status: str
    started_at: datetime
    attributes: dict[str, Any]


class Client(Endpoint):
    """Opens sessions. Make it with :meth:`connect`, or around a Temporal client of one's own.

    Takes the arguments of :class:`~gmi.worker.endpoint.Endpoint`.
    """

    @cached_property
    def memory(self) -> MemoryClient:
        """The long-term memory of all users and personas."""
        return MemoryClient(self)

    @classmethod
    async def connect(
        cls,
        *,
        address: str | None = None,
        namespace: str | None = None,
        profile: str | None = None,
        task_queue: str = TASK_QUEUE,
        plugin: GMIPlugin | None = None,
    ) -> Client:
        """Connect to Temporal.

        Args:
            address: ``host:port``; without it Temporal's own variables and profiles count.
            namespace: The namespace, likewise.
            profile: The profile, likewise.
            task_queue: The queue of the workers that serve sessions.
            plugin: The plugin to use.

        Raises:
            ConfigurationError: No server answers, or the profile is wrong.
        """
        temporal = await connect(
            address=address, namespace=namespace, profile=profile, plugin=plugin
        )
        return cls(
            temporal,
            task_queue=task_queue,
            search_attributes=await has_search_attributes(temporal),
        )

    def session(
        self,
        session_id: str | None = None,
        *,
        user_id: str = "local",
        persona: str | None = None,
        org: str = "",
        config: SessionConfig | None = None,
    ) -> Session:
        """A session by its id; it starts, or goes on, with the first call.

        Args:
            session_id: 1 to 200 letters, digits and ``._:@-``; a new one without.
            user_id: Who speaks; an opaque id, since it is shown in Temporal.
            persona: The persona's id; the worker's default without.
            org: The user's organization.
            config: Settings of a new session; one that runs keeps its own.

        Raises:
            ValidationError: An id is not usable.
            CredentialRefusedError: The configuration holds a raw key.
        """
        if session_id is None:
            session_id = str(uuid.uuid4())
        if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
            raise ValidationError(
                f"The session id {session_id!r} is not usable; take 1 to 200 letters, digits and "
                "'._:@-', beginning with a letter or digit."
            )
        if not isinstance(user_id, str) or not user_id.strip():
            raise ValidationError(
                f"The user id {user_id!r} is not usable; name the user by an opaque id, a text "
                "that is not empty."
            )
        return Session(
            self,
            session_id,
            user_id=user_id,
            persona=persona,
            org=org,
            config=config or SessionConfig(),
        )

    async def sessions(
        self, *, persona: str | None = None, user_id: str | None = None, running: bool = True
    ) -> AsyncIterator[SessionInfo]:
        """Sessions, newest first.

        Args:
            persona: Only this persona's; needs the search attributes.
            user_id: Only this user's; needs the search attributes.
            running: Only those whose workflow runs.
        """
        query = ["WorkflowType = 'GMISession'"]
        if running:
            query.append("ExecutionStatus = 'Running'")
        for name, value in ((PERSONA.name, persona), (USER.name, user_id)):
            if value is not None:
                query.append(f"{name} = '{value.replace(chr(39), '')}'")
        async for found in self.temporal.list_workflows(" AND ".join(query)):
            yield SessionInfo(
                session_id=found.id.removeprefix(WORKFLOW_PREFIX),
                workflow_id=found.id,
                status=found.status.name.lower() if found.status else "unknown",
                started_at=found.start_time,
                attributes={
                    pair.key.name: pair.value
                    for pair in found.typed_search_attributes
                    if pair.key in SEARCH_ATTRIBUTES
                },
            )

    async def keep_image(self, data: bytes, media_type: str) -> ImagePart:
        """Keep an image in the store; returns the part that shows it in a message.

        Args:
            data: The image, at most 700,000 bytes; for a larger one give its URL.
            media_type: For example ``image/png``.

        Raises:
            MessageTooLargeError: The image is larger.
        """
        if len(data) > MAX_KEPT_BYTES:
            raise MessageTooLargeError(
                f"The image has {len(data)} bytes and the limit is {MAX_KEPT_BYTES}; make it "
                "smaller, or give its URL.",
                details={"bytes": len(data), "limit": MAX_KEPT_BYTES},
            )
        request = Keep(data=base64.b64encode(data).decode())

        async def call() -> BlobRefs:
            refs: BlobRefs = await self.temporal.execute_workflow(
                "GMIKeep",
                request,
                id=f"gmi-keep-{uuid.uuid4()}",
                task_queue=self.task_queue,
                result_type=BlobRefs,
            )
            return refs

        refs = await calling(call)
        return ImagePart(blob=refs.digests[0], media_type=media_type)


async def has_search_attributes(temporal: temporalio.client.Client) -> bool:
    """Whether the namespace has the project's search attributes."""
    try:
        return not await missing_search_attributes(temporal)
    except RPCError:
        return False


async def missing_search_attributes(temporal: temporalio.client.Client) -> list[str]:
    """The project's search attributes that the namespace lacks, or has with another type.

    Raises:
        RPCError: The server does not list them.
    """
    known = await temporal.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=temporal.namespace)
    )
    return [
        key.name
        for key in SEARCH_ATTRIBUTES
        if known.custom_attributes.get(key.name) != int(key.indexed_value_type)
    ]
