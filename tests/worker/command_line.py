"""Running the command line as people do: as a process, through a pipe or in a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

GMI = (sys.executable, "-m", "gmi.worker")

# The child makes the terminal its own, so that Ctrl-C reaches it as it does a person's program.
_IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def clean_environment(home: Path, **variables: str) -> dict[str, str]:
    """An environment in which nothing of the machine's own configuration counts."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GMI_", "TEMPORAL_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "OLLAMA_"))
        and not name.endswith(("_API_KEY", "_BASE_URL"))
    }
    return {**kept, "HOME": str(home), "TERM": "dumb", "COLUMNS": "200", **variables}


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.err)["error"]
        return found


@dataclass(frozen=True)
class CommandLine:
    """Runs ``gmi`` in a directory."""

    directory: Path
    environ: dict[str, str]

    async def __call__(self, *words: str, stdin: str = "", timeout: float = 60) -> Result:
        process = await asyncio.create_subprocess_exec(
            *GMI,
            *words,
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin.encode()), timeout)
        except TimeoutError:
            process.kill()
            out, err = await process.communicate()
            raise AssertionError(f"gmi {words} did not end: {out!r} {err!r}") from None
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Start a command that goes on until it is ended."""
        return await asyncio.create_subprocess_exec(
            *GMI,
            *words,
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    async def history(self, session_id: str) -> str:
        """A session's history as JSON."""
        client = await Client.connect(self.environ["TEMPORAL_ADDRESS"])
        handle = client.get_workflow_handle(f"gmi-session-{session_id}")
        return (await handle.fetch_history()).to_json()

    async def terminal(self, *words: str) -> Terminal:
        """Start a command in a terminal of its own."""
        terminal = Terminal()
        await terminal.start((*GMI, *words), self.directory, self.environ)
        return terminal


class Terminal:
    """A pseudo-terminal with a program in it."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        self._grown = asyncio.Event()
        self._place = 0
        self.shown = ""

    async def start(self, command: tuple[str, ...], directory: Path, env: dict[str, str]) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _IN_TERMINAL, *command),
            cwd=directory,
            env=env,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        os.close(self._slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def see(self, text: str, timeout: float = 40) -> str:
        """Wait until ``text`` appears after what was seen before; returns what came up to it."""
        try:
            async with asyncio.timeout(timeout):
                while text not in self.shown[self._place :]:
                    self._grown.clear()
                    await self._grown.wait()
        except TimeoutError:
            raise AssertionError(
                f"{text!r} did not appear: {self.shown[self._place :][-2000:]!r}"
            ) from None
        end = self.shown.index(text, self._place) + len(text)
        seen, self._place = self.shown[self._place : end], end
        return seen

    async def end(self, timeout: float = 40) -> int:
        """Wait for the program's end."""
        return await asyncio.wait_for(self.process.wait(), timeout)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        self._grown.set()


async def eventually(what: Callable[[], bool], timeout: float = 30) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(timeout):
        held = what()
        while not held:
            await asyncio.sleep(0.05)
            held = what()


def children(parent: int) -> dict[int, str]:
    """The child processes of a process with their command lines."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "args="],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return {int(row[0]): row[2] for row in found if len(row) == 3 and int(row[1]) == parent}
