// A server asks for a model's answer: the person writes it in the place of a model, or reviews the request to a model and
// its result. Their messages are shown as text behind a bar; other content in one line that names it.

import type { AskView } from '../../asks/ask.ts';
import type { Dialog } from '../terminal/dialog.ts';
import { edited } from '../terminal/programs.ts';
import { bytes, cut } from '../terminal/table.ts';
import { clean, occasion, oneLine, quoted, stated } from '../terminal/words.ts';
import type { Output } from '../verb.ts';
import { accepted, DECLINE, type Said, type Talk, untilValid } from './talk.ts';

const DONE = '.';

export async function talkSampling(talk: Talk): Promise<string> {
  const { dialog, view } = talk;
  show(dialog, view);
  const outcome = await untilValid(talk, () => (view.stage === 'answer' ? own(talk) : reviewed(talk)));
  return view.stage === 'request' && outcome === 'open' ? afterModel(talk) : outcome;
}

function show({ output, say }: Dialog, view: AskView): void {
  say(requestText(output, view));
  if (view.stage === 'result') showResult({ output, say }, view);
  say('');
}

function showResult({ output, say }: Pick<Dialog, 'output' | 'say'>, { server, result }: AskView): void {
  say(`\nA model has answered, and ${oneLine(server)} does not know yet:\n${resultText(output, result)}`);
}

/** The request was approved; the model's result is reviewed next. */
async function afterModel(talk: Talk): Promise<string> {
  const { dialog, modelled } = talk;
  dialog.say('The model is asked; Ctrl-C leaves its answer for later.');
  const next = { ...talk, view: await modelled() };
  if (next.view.stage !== 'result') {
    dialog.complain('The model did not answer; `troupe logs` says why.');
    return untilValid(next, () => own(next));
  }
  showResult(dialog, next.view);
  dialog.say('');
  return untilValid(next, () => reviewed(next));
}

async function own({ dialog }: Talk): Promise<Said> {
  const word = await dialog.choose('[a]nswer in the place of a model, [d]ecline: ', ['answer', 'decline']);
  return word === 'decline' ? DECLINE : written(dialog);
}

/** Approve, edit, answer in the place of the model, or decline; an edited text is shown once more before it is sent. */
async function reviewed({ dialog, view, env }: Talk): Promise<Said> {
  const key = view.stage === 'request' ? 'request' : 'result';
  const where = key === 'request' ? 'send it to the model' : `give it to ${oneLine(view.server)}`;
  let content: Buffer | undefined;
  for (;;) {
    dialog.say(`[a]pprove and ${where}, [e]dit it,`);
    const choices = ['approve', 'edit', 'myself', 'decline'] as const;
    const word = await dialog.choose('answer it [m]yself, [d]ecline: ', choices);
    if (word === 'approve') return content ? accepted(content) : { action: 'accept' };
    if (word === 'decline') return DECLINE;
    if (word === 'myself') return written(dialog);
    const now = content ? JSON.parse(content.toString()) : view[key];
    if (!now) dialog.complain('It is too large to be edited here.');
    content = (now && (await edited(dialog, now, env))) ?? content;
    show(dialog, content ? { ...view, [key]: JSON.parse(content.toString()) } : view);
  }
}

async function written(dialog: Dialog): Promise<Said> {
  for (;;) {
    dialog.say(`Write the answer; a line with a single ${DONE} ends it.`);
    const lines: string[] = [];
    for (let line = await dialog.ask('> '); line.trim() !== DONE; line = await dialog.ask('> ')) lines.push(line);
    const word = await dialog.choose('[s]end, [w]rite again, [d]ecline: ', ['send', 'write', 'decline']);
    if (word === 'decline') return DECLINE;
    if (word === 'send') return accepted(Buffer.from(JSON.stringify(textResult(lines.join('\n')))));
  }
}

type Block = { readonly [key: string]: unknown };
type Message = { readonly role?: unknown; readonly content?: unknown };
type Request = {
  readonly messages?: unknown;
  readonly systemPrompt?: unknown;
  readonly tools?: unknown;
  readonly maxTokens?: unknown;
  readonly modelPreferences?: { readonly hints?: unknown };
};

function requestText(output: Output, view: AskView): string {
  const { server, request } = view;
  const name = output.paint('bold', oneLine(server));
  if (!request) return `${name} asks for a model's answer; the request is too large to be shown here.`;
  const { messages, systemPrompt, tools, maxTokens, modelPreferences } = request as Request;
  const hints = listOf(modelPreferences?.hints).map(({ name: hint }) => oneLine(String(hint)));
  const limits = [
    ...(typeof maxTokens === 'number' ? [`at most ${maxTokens} tokens`] : []),
    ...(hints.length > 0 ? [`a model like ${hints.join(', ')}`] : []),
  ];
  return [
    stated(
      output,
      server,
      ` asks for a model's answer${occasion(view)}${limits.length > 0 ? ` (${limits.join('; ')})` : ''}:`,
    ),
    ...(typeof systemPrompt === 'string' ? [`${name}, as the system prompt:`, quoted(output, systemPrompt)] : []),
    ...listOf(messages).flatMap((message) => messageText(output, `${name}, as the `, message)),
    ...toolsText(output, listOf(tools)),
  ].join('\n');
}

function resultText(output: Output, result: AskView['result']): string {
  if (!result) return '  too large to be shown here';
  const { model, stopReason } = result as { model?: unknown; stopReason?: unknown };
  const facts = [model, stopReason].filter((each) => typeof each === 'string').map((each) => oneLine(String(each)));
  return [...messageText(output, '', result), ...(facts.length > 0 ? [`(${facts.join(', ')})`] : [])].join('\n');
}

/** The result when a person answers in the place of a model. */
export const textResult = (text: string): object => ({
  role: 'assistant',
  model: 'human',
  content: { type: 'text', text },
  stopReason: 'endTurn',
});

function messageText(output: Output, who: string, { role, content }: Message): string[] {
  return [
    `${who}${role === 'assistant' ? 'assistant' : 'user'}:`,
    ...[content].flat().map((block) => quoted(output, blockText(isBlock(block) ? block : {}))),
  ];
}

function blockText({ type, text, data, mimeType, name, input, content, toolUseId }: Block): string {
  if (type === 'text') return clean(String(text ?? ''));
  if (type === 'tool_use') return `[calls ${oneLine(String(name))} with ${oneLine(JSON.stringify(input ?? {}))}]`;
  if (type === 'tool_result')
    return [`[what ${oneLine(String(toolUseId))} brought]`, ...listOf(content).map(blockText)].join('\n');
  const size = typeof data === 'string' ? bytes(Buffer.byteLength(data, 'base64')) : undefined;
  return `[${[type ?? 'content', mimeType, size].filter(Boolean).map(String).map(oneLine).join(' ')}]`;
}

function toolsText(output: Output, tools: readonly Block[]): string[] {
  if (tools.length === 0) return [];
  const lines = tools.map(
    ({ name, description }) => `  ${oneLine(String(name))}  ${oneLine(String(description ?? ''))}`,
  );
  return ['It may use these tools:', ...lines.map((line) => cut(line.trimEnd(), output.width))];
}

const isBlock = (value: unknown): value is Block => typeof value === 'object' && value !== null;
const listOf = (value: unknown): readonly Block[] => (Array.isArray(value) ? value.filter(isBlock) : []);
