// How to bring something here: an SDK pointed at this gateway, as this browser
// reaches it.

import { useTranslation } from 'react-i18next';
import { gatewayDomain, gatewayProtocol } from '@/lib/mount';
import { useStored } from '@/lib/stored';
import { Snippet } from './copy';
import { Tabs } from './tabs';

const PYTHON = `# pip install opensandbox
import os
from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync

config = ConnectionConfigSync(domain="${gatewayDomain}", protocol="${gatewayProtocol}",
                              api_key=os.environ["SANDBOX_TOKEN"],
                              headers={"X-Actor-Id": "my-agent"})
sandbox = SandboxSync.create("python:3.11", connection_config=config)
print(sandbox.commands.run("echo hello").logs.stdout[0].text)
sandbox.kill()`;

const JAVASCRIPT = `// npm install @alibaba-group/opensandbox
import { ConnectionConfig, Sandbox } from "@alibaba-group/opensandbox";

const connectionConfig = new ConnectionConfig({
  domain: "${gatewayDomain}", protocol: "${gatewayProtocol}",
  apiKey: process.env.SANDBOX_TOKEN,
  headers: { "X-Actor-Id": "my-agent" },
});
const sandbox = await Sandbox.create({ connectionConfig, image: "node:22" });
console.log((await sandbox.commands.run("echo hello")).logs.stdout[0].text);
await sandbox.kill();`;

const CURL = `curl ${gatewayProtocol}://${gatewayDomain}/v1/sandboxes \\
  -H "OPEN-SANDBOX-API-KEY: $SANDBOX_TOKEN" \\
  -H "X-Actor-Id: my-agent"`;

const WAYS = [
  { value: 'python', label: 'Python', text: PYTHON },
  { value: 'javascript', label: 'JavaScript', text: JAVASCRIPT },
  { value: 'curl', label: 'curl', text: CURL },
] as const;

type Way = (typeof WAYS)[number]['value'];

export function ConnectSnippet() {
  const { t } = useTranslation();
  const [way, setWay] = useStored<Way>('sdk', WAYS.map((w) => w.value), 'python');

  return (
    <div className="min-w-0 rounded-md border text-left text-text">
      <Tabs label={t('connect.label')} value={way} onChange={setWay}
        tabs={WAYS.map((w) => ({
          value: w.value, label: w.label,
          content: () => (
            <div className="grid gap-2 p-3">
              <p className="text-sm text-dim">{t('connect.token')}</p>
              <Snippet text={w.text} label={w.label} />
            </div>
          ),
        }))}
      />
    </div>
  );
}
