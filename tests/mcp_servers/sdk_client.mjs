// The official TypeScript SDK over stdio; its arguments, lines and end are those of tests/clients/inside/mcp_sdk_task.py.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [name, given, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript-sdk", version: "1" });
await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
const { tools } = await client.listTools();
console.log(JSON.stringify(tools.map((tool) => tool.name)));
const { content } = await client.callTool({ name, arguments: JSON.parse(given) });
console.log(JSON.stringify(content.map((block) => block.text ?? "")));
process.stdin.resume();
process.stdin.on("end", async () => {
  await client.close();
  process.exit(0);
});
