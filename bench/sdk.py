# Time of one command for a Python client:
#
#   sdk.py HOST:PORT sandbox|none COMMANDS    OPEN_SANDBOX_API_KEY: the key
#
# "sandbox": agent-sandbox-backends, which records by itself in the sandbox;
# "none": the SDK below it, which does not.  Prints a line: RESULT median/ms
# p99/ms

import asyncio
import os
import sys
import time
from datetime import timedelta

from agent_sandbox_backends import HistoryConfig, HistoryMode
from agent_sandbox_backends import create_opensandbox_backend
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig

HOST, MODE, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
KEY = os.environ.get("OPEN_SANDBOX_API_KEY")
IMAGE = "python:3.11"


async def measure(run) -> None:
    took = []

    for _ in range(COUNT + 1):
        start = time.perf_counter()
        await run()
        took.append((time.perf_counter() - start) * 1000)

    # the first one connects, and installs what it needs
    took = sorted(took[1:])
    print(f"RESULT {took[len(took) // 2]:.3f} {took[len(took) * 99 // 100]:.3f}")


async def recording() -> None:
    backend = await create_opensandbox_backend(
        "http://" + HOST, api_key=KEY, image=IMAGE, sandbox_ttl_seconds=600,
        history=HistoryConfig(mode=HistoryMode.SANDBOX))

    async def run():
        assert (await backend.execute("true")).exit_code == 0

    try:
        await measure(run)
    finally:
        await backend.close()


async def plain() -> None:
    config = ConnectionConfig(domain=HOST, protocol="http", api_key=KEY,
                              use_server_proxy=True)
    box = await Sandbox.create(IMAGE, timeout=timedelta(minutes=10),
                               connection_config=config)

    async def run():
        assert (await box.commands.run("true")).error is None

    try:
        await measure(run)
    finally:
        await box.kill()
        await box.close()


asyncio.run(recording() if MODE == "sandbox" else plain())
