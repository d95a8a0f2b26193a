"""Keeping data that is too large or too binary for a message: an image, say."""

from __future__ import annotations

import base64
import binascii

from temporalio import workflow
from temporalio.common import RawValue

from .decode import MISSING, decode
from .failures import invalid, refusing
from .policies import STORE
from .ports import StorePort
from .writes import BlobRefs, Keep, PutBlobs


@workflow.defn(name="GMIKeep", sandboxed=False)
class GMIKeep:
    """Keeps data in the store and answers with its digest, which an image part may name."""

    @workflow.run
    async def run(self, raw: RawValue = MISSING) -> BlobRefs:
        """Keep one piece of data."""
        with refusing():
            request = decode(raw, Keep)
            try:
                base64.b64decode(request.data, validate=True)
            except binascii.Error as error:
                raise invalid("Keep", f"its data is not base64 ({error})") from error
            return await workflow.execute_activity_method(
                StorePort.put_blobs, PutBlobs(data=[request.data]), summary="keep data", **STORE
            )
