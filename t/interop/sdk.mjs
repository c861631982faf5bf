// The sequence of reference 7.4 with the unmodified JavaScript SDK; arguments
// and lines are those of sdk.py.

import { ConnectionConfig, Sandbox } from "@alibaba-group/opensandbox";
import { createInterface } from "node:readline";

const PATH = "/tmp/fx/js.txt";
const TEXT = "h\u00e9llo \u4f60\u597d\n";
const [domain, mode] = process.argv.slice(2);
const config = new ConnectionConfig({
    domain,
    apiKey: process.env.OPEN_SANDBOX_API_KEY,
    useServerProxy: mode === "proxy",
    headers: { "X-Actor-Id": `js-${mode}`, "X-Run-Id": "run-js" },
});
const texts = (messages) => messages.map((m) => m.text);
const saw = {};

let box = await Sandbox.create({
    connectionConfig: config, image: "python:3.11", timeoutSeconds: 600,
});
saw.id = box.id;

let run = await box.commands.run("echo hi");
saw.echo = texts(run.logs.stdout);
run = await box.commands.run("echo out; echo err >&2; echo; exit 3");
saw.exit = [...texts(run.logs.stdout), ...texts(run.logs.stderr)];
saw.error = run.error?.value ?? null;

await box.files.writeFiles([{ path: PATH, data: TEXT }]);
saw.read = new TextDecoder().decode(await box.files.readBytes(PATH));
saw.listed = (await box.files.listDirectory({ path: "/tmp/fx" }))
    .map((e) => e.path);

const execd = await box.getEndpoint(44772);
console.log(JSON.stringify({
    id: box.id, endpoint: execd.endpoint, headers: execd.headers ?? {},
}));
await new Promise((go) => createInterface({ input: process.stdin })
    .once("line", go));

await box.pause();
box = await box.resume();
run = await box.commands.run("cat " + PATH);
saw.after = texts(run.logs.stdout);
await box.renew(1200);
await box.kill();
await box.close();

console.log(JSON.stringify(saw));
process.exit(0);
