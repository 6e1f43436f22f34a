// What the two APIs take, as their documentation says, and what is wrong with a request that they would refuse.

import { z } from 'zod';

export const openaiProblem = (body: unknown): string | undefined => misshapen(openai, body) ?? openaiRules(body);
export const anthropicProblem = (body: unknown): string | undefined =>
  misshapen(anthropic, body) ?? anthropicRules(body);

function misshapen(schema: z.ZodType, body: unknown): string | undefined {
  const { error } = schema.safeParse(body);
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
}

const parameters = z.looseObject({ type: z.literal('object') });
const name = z.string().regex(/^[\w-]{1,64}$/);
const words = z.strictObject({ type: z.literal('text'), text: z.string() });
const count = z.int().min(1);

const openai = z.strictObject({
  model: z.string(),
  messages: z
    .array(
      z.discriminatedUnion('role', [
        z.strictObject({ role: z.literal('system'), content: z.string() }),
        z.strictObject({
          role: z.literal('user'),
          content: z.union([
            z.string(),
            z.array(
              z.union([
                words,
                z.strictObject({
                  type: z.literal('image_url'),
                  image_url: z.strictObject({ url: z.string().regex(/^data:image\/[a-z]+;base64,[\w+/=]+$/) }),
                }),
                z.strictObject({
                  type: z.literal('input_audio'),
                  input_audio: z.strictObject({ data: z.base64(), format: z.enum(['wav', 'mp3']) }),
                }),
              ]),
            ),
          ]),
        }),
        z.strictObject({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          tool_calls: z
            .array(
              z.strictObject({
                id: z.string(),
                type: z.literal('function'),
                function: z.strictObject({ name, arguments: z.string().refine((text) => JSON.parse(text)) }),
              }),
            )
            .min(1)
            .optional(),
        }),
        z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
      ]),
    )
    .min(1),
  max_tokens: count.optional(),
  max_completion_tokens: count.optional(),
  temperature: z.number().min(0).max(2).optional(),
  stop: z.array(z.string()).max(4).optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({ name, description: z.string().optional(), parameters }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.enum(['auto', 'required', 'none']).optional(),
});

const text = z.strictObject({
  type: z.literal('text'),
  text: z.string().regex(/\S/, 'text content blocks must be non-empty'),
});
const image = z.strictObject({
  type: z.literal('image'),
  source: z.strictObject({
    type: z.literal('base64'),
    media_type: z.enum(['image/jpeg', 'image/png', 'image/gif', 'image/webp']),
    data: z.base64(),
  }),
});
const anthropic = z.strictObject({
  model: z.string(),
  messages: z
    .array(
      z.strictObject({
        role: z.enum(['user', 'assistant']),
        content: z
          .array(
            z.union([
              text,
              image,
              z.strictObject({ type: z.literal('tool_use'), id: name, name, input: z.looseObject({}) }),
              z.strictObject({
                type: z.literal('tool_result'),
                tool_use_id: name,
                content: z.array(z.union([text, image])),
                is_error: z.boolean().optional(),
              }),
            ]),
          )
          .min(1),
      }),
    )
    .min(1),
  max_tokens: count,
  system: z.string().optional(),
  temperature: z.number().min(0).max(1).optional(),
  stop_sequences: z.array(z.string().regex(/\S/)).optional(),
  tools: z.array(z.strictObject({ name, description: z.string().optional(), input_schema: parameters })).optional(),
  tool_choice: z.strictObject({ type: z.enum(['auto', 'any', 'none']) }).optional(),
});

/** Every call of a tool is answered before anything else is said; tools are chosen only where there are some. */
function openaiRules({ messages, tools, tool_choice, max_tokens, max_completion_tokens }: any): string | undefined {
  let open: string[] = [];
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === 'tool' && !open.includes(tool_call_id)) return `messages: no call ${tool_call_id}`;
    if (role !== 'tool' && open.length > 0) return 'messages: tool_calls must be followed by tool messages';
    open = role === 'tool' ? open.filter((id) => id !== tool_call_id) : tool_calls.map(({ id }: any) => id);
  }
  if (open.length > 0) return 'messages: tool_calls must be followed by tool messages';
  if (max_tokens && max_completion_tokens) return 'max_tokens and max_completion_tokens exclude each other';
  return tool_choice && !tools ? 'tool_choice is only allowed when tools are specified' : undefined;
}

/** Roles take turns, results come right after their uses and first in their turn, and what is used is defined. */
function anthropicRules({ messages, tools = [], tool_choice }: any): string | undefined {
  let open: string[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== ['user', 'assistant'][index % 2]) return `messages.${index}: roles must alternate`;
    const results = content.filter(({ type }: any) => type === 'tool_result').map((block: any) => block.tool_use_id);
    if (
      open.join() !==
        content
          .slice(0, open.length)
          .map((block: any) => block.tool_use_id)
          .join() ||
      results.length > open.length
    )
      return `messages.${index}: tool_use ids were found without tool_result blocks immediately after`;
    open = content.filter(({ type }: any) => type === 'tool_use').map(({ id }: any) => id);
    if (
      content.some(({ type, name: used }: any) => type === 'tool_use' && !tools.some((tool: any) => tool.name === used))
    )
      return 'requests which include tool_use blocks must define tools';
  }
  return tool_choice && tools.length === 0 ? 'tool_choice: tools must be defined' : undefined;
}
