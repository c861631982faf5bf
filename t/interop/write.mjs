// Writes one file again and again with the unmodified JavaScript SDK, each time
// whole and all of one kind; arguments are those of write.py.

import { ConnectionConfig, Sandbox } from "@alibaba-group/opensandbox";

const [domain, sandboxId, path, times] = process.argv.slice(2);
const connectionConfig = new ConnectionConfig({
    domain, apiKey: process.env.OPEN_SANDBOX_API_KEY, headers: { "X-Actor-Id": "js" },
});
const box = await Sandbox.connect({ sandboxId, connectionConfig });

for (let i = 0; i < Number(times); i++) {
    const line = `js ${String(i).padStart(6, "0")}\n`;
    await box.files.writeFiles([{ path, data: line.repeat(2000 + i % 7 * 500) }]);
}

await box.close();
