// A server wants a model to speak. A person answers in its place, or looks at what a model is told and what it says.

import type { AskView } from '../asks/ask.ts';
import type { Dialog } from './answer-dialog.ts';
import { edited } from './answer-editor.ts';
import { requestText, resultText, textResult } from './answer-messages.ts';
import { accepted, DECLINE, type Said, type Talk, untilValid } from './answer-talk.ts';
import { oneLine } from './answer-words.ts';

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

/** The request was approved; what comes of it is the next thing to be looked at. */
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

/** What was edited is looked at once more, like what came. */
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
