"""Counts up its own number in a file that others count in, too, with the unmodified
Python SDK: reads the file, and writes it again under If-Match, which it adds below the
SDK, until nobody else was faster. Arguments: DOMAIN, the sandbox, the path, how often.
Prints how often somebody else was."""

import asyncio
import hashlib
import logging
import re
import sys

import httpx
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig


# the SDK logs what it raises
logging.disable(logging.CRITICAL)


class Conditional(httpx.AsyncHTTPTransport):
    match = None

    async def handle_async_request(self, request):
        if self.match and request.url.path.endswith("/files/upload"):
            request.headers["If-Match"] = f"sha256:{self.match}"
        return await super().handle_async_request(request)


async def main():
    domain, box_id, path, times = sys.argv[1:5]
    transport = Conditional()
    config = ConnectionConfig(
        domain=domain, transport=transport, headers={"X-Actor-Id": "py"}
    )
    box = await Sandbox.connect(box_id, connection_config=config)
    again = 0

    for _ in range(int(times)):
        while True:
            text = await box.files.read_file(path)
            transport.match = hashlib.sha256(text.encode()).hexdigest()
            new = re.sub(r"py (\d+)", lambda m: f"py {int(m[1]) + 1}", text)

            try:
                await box.files.write_file(path, new)
                break
            except Exception as e:
                if "412" not in f"{getattr(e, 'status_code', '')} {e!r} {e.__cause__!r}":
                    raise
                again += 1

    await transport.aclose()
    print(again)


asyncio.run(main())
