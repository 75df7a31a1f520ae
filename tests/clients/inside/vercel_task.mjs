// The Vercel AI SDK with its providers of OpenAI and Anthropic. Arguments and output as task.py tells.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { dynamicTool, generateText, jsonSchema, stepCountIs, streamText } from "ai";
import { readFileSync } from "node:fs";

const [url, wire, listing, mode, ...prompts] = process.argv.slice(2);
const calls = [];
const answers = [];

function modelOf() {
  if (wire === "messages") return createAnthropic({ apiKey: "k", baseURL: `${url}/v1` })("claude-sonnet-5");
  const openai = createOpenAI({ apiKey: "k", baseURL: `${url}/v1` });
  return wire === "responses" ? openai.responses("gpt-5.5") : openai.chat("gpt-4.1");
}

function toolOf({ name, description, inputSchema }) {
  const execute = async (input) => {
    calls.push([name, input]);
    return `${name} has run: said in words`;
  };
  return [name, dynamicTool({ description, inputSchema: jsonSchema(inputSchema), execute })];
}

const tools = Object.fromEntries(JSON.parse(readFileSync(listing, "utf-8")).map(toolOf));
const model = modelOf();
const messages = [];
for (const prompt of prompts) {
  messages.push({ role: "user", content: prompt });
  const asked = { model, tools, messages, stopWhen: stepCountIs(12), maxRetries: 0 };
  const run = mode === "stream" ? streamText({ ...asked, onError: ({ error }) => { throw error; } }) : await generateText(asked);
  answers.push(await run.text);
  messages.push(...(await run.responseMessages));
}
console.log(JSON.stringify({ answers, calls }));
