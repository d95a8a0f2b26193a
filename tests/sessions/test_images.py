"""Images that are kept in the store and shown to the model."""

from __future__ import annotations

import base64
import uuid

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from gmi.personas.errors import MessageTooLargeError
from gmi.personas.messages import TextPart

from ..conftest import Stage
from ..support.scripted_model import Text

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_kept_image_reaches_the_model_as_it_was(stage: Stage) -> None:
    stage.model.on("what is this", Text("a dot"))
    part = await stage.client.keep_image(PICTURE, "image/png")
    assert part.url is None
    session = stage.session()
    output = await session.send([TextPart(text="what is this"), part])
    assert output.response_text == "a dot", output.error
    sent = stage.model.requests[-1]["messages"][-1]["content"]
    [image] = [piece for piece in sent if piece["type"] == "image_url"]
    assert image["image_url"]["url"] == (
        "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    )
    again = await stage.client.keep_image(PICTURE, "image/png")
    assert again.blob == part.blob


async def test_an_image_that_is_too_large_is_refused_with_size_and_limit(stage: Stage) -> None:
    with pytest.raises(MessageTooLargeError, match="700001"):
        await stage.client.keep_image(b"x" * 700_001, "image/png")


async def test_data_that_is_not_base64_is_refused(stage: Stage) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await stage.client.temporal.execute_workflow(
            "GMIKeep",
            {"data": "no base64!"},
            id=f"keep-{uuid.uuid4()}",
            task_queue=stage.client.task_queue,
        )
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "SYS_VALIDATION_ERROR"
