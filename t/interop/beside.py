"""The published history helper and the SDK's store, beside another writer.

    beside.py read DATABASE READS OPERATIONS
        reads until both numbers are reached and says what was seen, in JSON
    beside.py write DATABASE WHO OPERATIONS [PROGRAM]
        WHO: published, ours (PROGRAM), both in turn, processes (the published
        one, started for each as the SDK does); an operation is three batches:
        start, output, end
"""

import asyncio
import base64
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import agent_sandbox_backends.helper.source.history_helper as helper
from agent_sandbox_backends.domain.identity import SandboxRef
from agent_sandbox_backends.history.sandbox import SandboxHistoryStore


def call(*arguments):
    """The helper's own main(), as if it were started: its data, or dies."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = helper.main(list(arguments))
    answer = json.loads(out.getvalue())
    if code != 0 or not answer["ok"]:
        raise SystemExit(f"{arguments}: {answer}")
    return answer["data"]


class Transport:
    """How the store reaches its helper: a file that is there already."""

    def __init__(self, database):
        self.database = database
        self.identity = SandboxRef(
            provider_name="opensandbox", provider_key="opensandbox-default",
            sandbox_id="s1", sandbox_instance_id="i1")

    async def ensure_installed(self, *, sdk_version, config):
        return await self.invoke("health")

    async def invoke(self, command, *, arguments=(), payload=None,
                     payload_flag=None):
        return call("--database", self.database, command, *arguments)


async def read(database, reads, operations):
    store = SandboxHistoryStore(Transport(database), sdk_version="0.1.0")
    seen = {"created": {}, "completed": {}}
    after = n = 0
    ids = []
    deadline = time.monotonic() + 300 + reads / 10
    while n < reads or len(seen["completed"]) < operations:
        if time.monotonic() > deadline:
            break
        page = await store.query_changes(after_change_seq=after, limit=200)
        n += 1
        if page["reset_required"]:
            raise SystemExit(f"reset_required after {after}")
        for change in page["changes"]:
            if change["source_seq"] <= after:
                raise SystemExit(f"a change again: {change}")
            after = change["source_seq"]
            kind = seen.get(change["change_type"])
            if kind is not None:
                if change["event_id"] in kind:
                    raise SystemExit(f"twice: {change}")
                kind[change["event_id"]] = 1
                ids.append(change["event_id"])
        if not ids:
            await asyncio.sleep(0.01)
            continue
        event = random.choice(ids)
        one = await store.get_operation(event)
        out = await store.get_output(event, "stdout")
        call("--database", database, "health")
        several = await store.get_operations(random.choices(ids, k=5))
        n += 4
        if one["event_id"] != event or not several["operations"]:
            raise SystemExit(f"another operation: {one}")
        if one["status"] == "succeeded":
            text = b"".join(base64.b64decode(c["data_base64"])
                            for c in out["chunks"]).decode()
            if text != f"out {one['command']['command']}\n":
                raise SystemExit(f"output of {event}: {text!r}")
    print(json.dumps({"reads": n, "created": len(seen["created"]),
                      "completed": len(seen["completed"])}))


def batches(event, number):
    when = f"2026-11-29T09:00:{number % 60:02d}.{number:06d}Z"
    text = base64.b64encode(f"out {number}\n".encode()).decode()
    yield {"type": "operation_started", "change_id": f"{event}:created",
           "event": {"event_id": event, "operation_type": "command.execute",
                     "occurred_at": when, "request": {"command": str(number)},
                     "actor": {"actor_type": "agent", "actor_id": "a"},
                     "schema_version": 1,
                     "command": {"command": str(number), "cwd": "/"}}}
    yield {"type": "command_output", "change_id": f"{event}:output:stdout:0",
           "event_id": event, "chunks": [
               {"stream": "stdout", "chunk_index": 0, "data_base64": text,
                "encoding": "identity", "original_size": len(f"out {number}\n"),
                "created_at": when}]}
    yield {"type": "operation_completed",
           "change_id": f"{event}:completed:succeeded",
           "event": {"event_id": event, "status": "succeeded",
                     "completed_at": when, "duration_ms": 1,
                     "result": {"exit_code": 0},
                     "command": {"exit_code": 0, "output_complete": True,
                                 "history_storage_state": "complete"}}}


def write(database, who, operations, program=None):
    file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False).name
    turn = 0
    command = [program]
    if who == "processes":
        command = [sys.executable, helper.__file__]
        if not os.path.exists(database):
            helper.initialize(database, {
                "provider_key": "p", "sandbox_id": "s",
                "sandbox_instance_id": "i", "sdk_version": "0.1.0",
                "schema_version": 1}, None)
    for number in range(1, operations + 1):
        first = {"published": "1", "ours": "2", "both": "3",
                 "processes": "4"}[who]
        event = f"0197a000-0000-7000-800{first}-{number:012x}"
        for record in batches(event, number):
            with open(file, "w", encoding="utf-8") as f:
                json.dump({"schema_version": 1,
                           "batch_id": record["change_id"],
                           "records": [record]}, f)
            arguments = ["--database", database, "apply", "--batch-file", file]
            turn += 1
            if who == "published" or (who == "both" and turn % 2):
                call(*arguments)
            else:
                subprocess.run([*command, *arguments], check=True,
                               stdout=subprocess.DEVNULL)
    os.unlink(file)


if sys.argv[1] == "read":
    asyncio.run(read(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
else:
    write(sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
