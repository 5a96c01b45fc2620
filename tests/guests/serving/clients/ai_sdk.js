// Asks a server by each of the AI SDK's providers, whole and streamed, and prints what they make of the answers.
// Arguments: the base URL, and the model.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';

const [baseURL, model] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey: 'none' });
const compatible = createOpenAICompatible({ name: 'ragbed', baseURL, apiKey: 'none', includeUsage: true });
const models = { chat: openai.chat(model), responses: openai.responses(model), compatible: compatible(model) };
const question = { role: 'user', content: 'Which country is Oslo the capital of?' };

const shown = async (result) => ({
  text: await result.text, sources: (await result.sources).map(({ title, url }) => ({ title, url })),
  finish: await result.finishReason, tokens: (await result.usage).totalTokens,
});

const found = {};
for (const [name, one] of Object.entries(models)) {
  const whole = await generateText({ model: one, messages: [question], maxRetries: 0 });
  const errors = [];
  const streamed = streamText({ model: one, messages: [question], maxRetries: 0, onError: ({ error }) => errors.push(`${error}`) });
  const pieces = [];
  for await (const piece of streamed.textStream) pieces.push(piece);
  const further = await generateText({
    model: one, messages: [question, ...whole.response.messages, { role: 'user', content: 'And of which is Rome?' }], maxRetries: 0,
  });
  found[name] = { whole: await shown(whole), streamed: await shown(streamed), pieces, errors, further: further.text };
}
const failing = streamText({ model: models.responses, prompt: 'Fail.', maxRetries: 0, onError: () => {} });
const parts = [];
for await (const part of failing.fullStream) parts.push(part.type);
found.failed = parts.includes('error');
console.log(JSON.stringify(found));
