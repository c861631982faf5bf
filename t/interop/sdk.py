"""The sequence of reference 7.4 with the unmodified Python SDK.

Arguments: DOMAIN, "proxy" or "default".  The token is read from the
environment (OPEN_SANDBOX_API_KEY).  Prints one JSON object a line: first the
endpoint for the terminal, which no SDK has a method for; after a line on
standard input it goes on, and ends with what it saw.
"""

import asyncio
import json
import sys
from datetime import timedelta

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from opensandbox.models.filesystem import DirectoryListEntry

PATH = "/tmp/fx/py.txt"
TEXT = "h\u00e9llo \u4f60\u597d\n"


def texts(messages):
    return [m.text for m in messages]


async def main():
    domain, mode = sys.argv[1:3]
    config = ConnectionConfig(
        domain=domain,
        use_server_proxy=mode == "proxy",
        headers={"X-Actor-Id": f"py-{mode}", "X-Run-Id": "run-py"},
    )
    saw = {}

    box = await Sandbox.create(
        "python:3.11", timeout=timedelta(minutes=10), connection_config=config
    )
    saw["id"] = box.id

    run = await box.commands.run("echo hi")
    saw["echo"] = texts(run.logs.stdout)
    run = await box.commands.run("echo out; echo err >&2; echo; exit 3")
    saw["exit"] = texts(run.logs.stdout) + texts(run.logs.stderr)
    saw["error"] = run.error.value if run.error else None

    await box.files.write_file(PATH, TEXT)
    saw["read"] = (await box.files.read_bytes(PATH)).decode()
    listed = await box.files.list_directory(DirectoryListEntry(path="/tmp/fx"))
    saw["listed"] = [e.path for e in listed]

    execd = await box.get_endpoint(44772)
    print(json.dumps({"id": box.id, "endpoint": execd.endpoint,
                      "headers": dict(execd.headers or {})}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)

    await box.pause()
    box = await Sandbox.resume(box.id, connection_config=config)
    run = await box.commands.run("cat " + PATH)
    saw["after"] = texts(run.logs.stdout)
    await box.renew(timedelta(minutes=20))
    await box.kill()
    await box.close()

    print(json.dumps(saw), flush=True)


asyncio.run(main())
