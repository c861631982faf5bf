// Counts up its own number in a file that others count in, too, with the unmodified
// JavaScript SDK; arguments and output are those of count.py.

import { createHash } from "node:crypto";

const real = globalThis.fetch;
let match;

// before the SDK takes hold of it
globalThis.fetch = (input, init) => {
    const request = new Request(input, init);
    if (match && new URL(request.url).pathname.endsWith("/files/upload")) {
        request.headers.set("If-Match", `sha256:${match}`);
    }
    return real(request);
};

const { ConnectionConfig, Sandbox } = await import("@alibaba-group/opensandbox");

const [domain, sandboxId, path, times] = process.argv.slice(2);
const connectionConfig = new ConnectionConfig({
    domain, apiKey: process.env.OPEN_SANDBOX_API_KEY, headers: { "X-Actor-Id": "js" },
});
const box = await Sandbox.connect({ sandboxId, connectionConfig });
let again = 0;

for (let i = 0; i < Number(times); i++) {
    for (;;) {
        const text = await box.files.readFile(path);
        match = createHash("sha256").update(text).digest("hex");

        try {
            await box.files.writeFiles([{
                path, data: text.replace(/js (\d+)/, (_, n) => `js ${Number(n) + 1}`),
            }]);
            break;
        } catch (e) {
            if (!/412/.test(`${e.statusCode} ${e} ${e.cause ?? ""}`)) {
                throw e;
            }
            again++;
        }
    }
}

console.log(again);
await box.close();
