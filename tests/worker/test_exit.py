"""A program that used the connection ends as it should."""

from __future__ import annotations

import asyncio
import sys

from gmi.worker.connection import SETTLE_SECONDS
from gmi.worker.dev_server import DevServer

PROGRAM = """\
import asyncio, atexit, sys, time
from gmi.worker import connect

async def main():
    await connect(address=sys.argv[1])
    await connect(address=sys.argv[1])

# Registered before the guard is, so it runs after it.
atexit.register(lambda: print(time.monotonic() - ended))
asyncio.run(main())
ended = time.monotonic()
"""


async def test_a_program_ends_well_and_waits_once_for_the_sdks_threads(
    dev_server: DevServer,
) -> None:
    for _ in range(10):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, dev_server.place.address),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, err
        assert float(out) >= SETTLE_SECONDS
