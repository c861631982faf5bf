"""Writes one file again and again with the unmodified Python SDK, each time whole
and all of one kind.  Arguments: DOMAIN, the sandbox, the path, how often."""

import asyncio
import sys

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig


async def main():
    domain, box_id, path, times = sys.argv[1:5]
    box = await Sandbox.connect(
        box_id, connection_config=ConnectionConfig(
            domain=domain, headers={"X-Actor-Id": "py"}
        )
    )

    for i in range(int(times)):
        await box.files.write_file(path, f"py {i:06}\n" * (2000 + i % 7 * 500))

    await box.close()


asyncio.run(main())
