// A form made from a server's schema: field after field, then a review of all before anything is sent. Decline and cancel are
// always offered, and an answer that the daemon refuses leads back to its field.

import type { AskView } from '../../asks/ask.ts';
import { type Field, type Form, readForm } from '../../asks/forms/form.ts';
import { createValidator, type Validator } from '../../asks/forms/validator.ts';
import { TroupeError } from '../../protocol/failures.ts';
import type { Dialog } from '../terminal/dialog.ts';
import { cut } from '../terminal/table.ts';
import { folded, occasion, oneLine, quoted, stated } from '../terminal/words.ts';
import { askField, CLEAR, type Value, valueText } from './field.ts';
import { accepted, type Said, type Talk, untilValid } from './talk.ts';

type Filled = Map<string, Value>;
type Filling = { readonly dialog: Dialog; readonly validator: Validator; readonly form: Form; readonly values: Filled };

const WIDEST_TITLE = 28;

export async function talkForm(talk: Talk): Promise<string> {
  const { dialog, view } = talk;
  const form = readForm(view.schema);
  if (typeof form === 'string') throw new TroupeError('invalid', `the form cannot be shown: ${form}`);
  const validator = createValidator();
  const values: Filled = new Map(form.fields.map((field) => [field.name, field.default as Value]));
  const filling = { dialog, validator, form, values };
  introduce(dialog, view, form);
  try {
    for (const field of form.fields) await fill(filling, field);
    return await untilValid(talk, async (complaint) => {
      const field = complaint === undefined ? undefined : namedIn(complaint, form);
      if (field) await fill(filling, field);
      return reviewed(filling, view);
    });
  } finally {
    validator.close();
  }
}

function introduce({ output, say }: Dialog, view: AskView, { fields }: Form): void {
  say(stated(output, view.server, ` asks${occasion(view)}:`));
  say(quoted(output, view.message));
  const hasDefaults = fields.some((field) => field.default !== undefined && !field.isRequired);
  const hint = `Enter takes what is in [brackets]${hasDefaults ? `, ${CLEAR} leaves it out` : ''}. Ctrl-C sends nothing.`;
  say(`${fields.length > 0 ? `${output.paint('dim', hint)}\n` : ''}`);
}

async function fill({ dialog, validator, values }: Filling, field: Field): Promise<void> {
  values.set(field.name, await askField({ dialog, validator, field, suggested: values.get(field.name) }));
}

/** Shows all values until the person sends exactly those, edits one, declines or cancels. */
async function reviewed(filling: Filling, view: AskView): Promise<Said> {
  const { dialog, form, values } = filling;
  for (;;) {
    dialog.say(`\n${reviewText(filling, view)}\n`);
    const [word, which] = await decision(dialog, form);
    if (word === 'send') return accepted(contentOf(values));
    if (word !== 'edit') return { action: word };
    const field = await whichField(dialog, form, which);
    if (field) await fill(filling, field);
  }
}

/** `e 7` names the field at once. */
async function decision(dialog: Dialog, { fields }: Form) {
  if (fields.length > 0) {
    const choices = ['send', 'edit', 'decline', 'cancel'] as const;
    return dialog.command('[s]end, [e]dit a field, [d]ecline, [c]ancel: ', choices, 'edit');
  }
  const word = await dialog.choose('[s]end, [d]ecline, [c]ancel: ', ['send', 'decline', 'cancel']);
  return [word, ''] as const;
}

function reviewText({ dialog: { output }, form, values }: Filling, { server }: AskView): string {
  if (form.fields.length === 0) return `${oneLine(server)} wants no more than your consent.`;
  const titles = form.fields.map(({ title }) => cut(oneLine(title), WIDEST_TITLE));
  const width = Math.max(...titles.map((title) => title.length));
  const lines = form.fields.flatMap((field, index) => {
    const [first = '', ...rest] = folded(valueText(field, values.get(field.name)), output.width - width - 8);
    const head = `${String(index + 1).padStart(4)}  ${(titles[index] ?? '').padEnd(width)}  `;
    return [
      `${head}${output.paint('bold', first)}`,
      ...rest.map((line) => ' '.repeat(head.length) + output.paint('bold', line)),
    ];
  });
  return [`${oneLine(server)} would get:`, ...lines].join('\n');
}

/** By its number in the review, its name or its title. */
async function whichField(dialog: Dialog, { fields }: Form, named: string): Promise<Field | undefined> {
  const text = named || (await dialog.ask(`Which one (1-${fields.length})? `)).trim();
  const found =
    fields[Number(text) - 1] ??
    fields.find(({ name, title }) => [name, title].some((each) => each.toLowerCase() === text.toLowerCase()));
  if (!found && text !== '') dialog.complain(`  There is no field ${JSON.stringify(text)}.`);
  return found;
}

/** The daemon begins its sentence with the name of the field. */
const namedIn = (complaint: string, { fields }: Form): Field | undefined =>
  fields.find(({ name }) => complaint.startsWith(`${name}: `));

const contentOf = (values: Filled): Buffer => Buffer.from(JSON.stringify(Object.fromEntries(values))); // JSON has no undefined: those fields are left out
