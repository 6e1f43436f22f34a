// The tools that the suite calls, by name: what they are listed with, and `run(args, extra)` of the SDK's server.

import { setTimeout as sleep } from 'node:timers/promises';
import { CreateMessageResultSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { audio, embedded, image, text } from './contents.mjs';
import { account, choices, defaults, draft2020, nothing, oneText } from './schemas.mjs';

const plain = (description, ...content) => ({ description, inputSchema: nothing, run: () => ({ content }) });

export const tools = {
  test_simple_text: plain('A text', text('This is a simple text response for testing.')),
  test_image_content: plain('A picture', image),
  test_audio_content: plain('A sound', audio),
  test_embedded_resource: plain(
    'A resource',
    embedded('test://embedded-resource', 'text/plain', 'An embedded resource.'),
  ),
  test_multiple_content_types: plain(
    'A text, a picture and a resource',
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ),
  test_tool_with_logging: { description: 'Logs three lines', inputSchema: nothing, run: logs },
  test_tool_with_progress: { description: 'Reports progress', inputSchema: nothing, run: progresses },
  test_error_handling: {
    description: 'Fails',
    inputSchema: nothing,
    run: () => ({ isError: true, content: [text('This tool intentionally returns an error for testing')] }),
  },
  test_reconnection: { description: 'Closes its stream, then answers', inputSchema: nothing, run: leaves },
  test_sampling: { description: 'Asks for a completion', inputSchema: oneText('prompt'), run: samples },
  test_elicitation: {
    description: 'Asks a person',
    inputSchema: oneText('message'),
    run: ({ message }, extra) => elicits(extra, message, account),
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks a person, with an answer to each question proposed',
    inputSchema: nothing,
    run: (_, extra) => elicits(extra, 'Please review and update the form fields with defaults', defaults),
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks a person to choose',
    inputSchema: nothing,
    run: (_, extra) => elicits(extra, 'Please select options from the enum fields', choices),
  },
  json_schema_2020_12_tool: {
    description: 'Has a schema with all that JSON Schema 2020-12 has',
    inputSchema: draft2020,
    run: (args) => ({ content: [text(`called with ${JSON.stringify(args)}`)] }),
  },
};

async function logs(_, { sendNotification }) {
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    await sleep(50);
  }
  return { content: [text('Tool with logging executed successfully')] };
}

async function progresses(_, { sendNotification, _meta }) {
  const progressToken = _meta?.progressToken ?? 0;
  for (const progress of [0, 50, 100]) {
    const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
    await sendNotification({ method: 'notifications/progress', params });
    await sleep(50);
  }
  return { content: [text(String(progressToken))] };
}

/** Over stdio there is no stream to close: it only answers late. */
async function leaves(_, { closeSSEStream }) {
  closeSSEStream?.();
  await sleep(100);
  return { content: [text('Reconnection test completed successfully.')] };
}

async function samples({ prompt }, { sendRequest }) {
  const params = { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 };
  const { content } = await sendRequest({ method: 'sampling/createMessage', params }, CreateMessageResultSchema);
  return { content: [text(`LLM response: ${content.text}`)] };
}

async function elicits({ sendRequest }, message, requestedSchema) {
  const request = { method: 'elicitation/create', params: { message, requestedSchema } };
  const { action, content = {} } = await sendRequest(request, ElicitResultSchema);
  return { content: [text(`User response: action=${action}, content=${JSON.stringify(content)}`)] };
}
