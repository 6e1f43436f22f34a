// Answers what servers ask, on NATS:  node examples/answerer.mjs '{"name":"Ada"}' [caller]
// Forms are filled in with what is given here and what they propose; sampling is answered by a very small model.

import { connect } from 'nats';

const [known = '{}', caller = '_'] = process.argv.slice(2);
const values = JSON.parse(known);
const pass = { action: 'pass' }; // not mine: the question goes on, in the end to the inbox

const answers = {
  elicitation({ mode, schema, error }) {
    if (error) console.error(error); // what was wrong with the last answer
    if (mode !== 'form' || error) return pass;
    const fields = Object.entries(schema.properties ?? {});
    const content = Object.fromEntries(
      fields
        .map(([name, { default: proposed }]) => [name, values[name] ?? proposed])
        .filter(([, value]) => value != null),
    );
    return (schema.required ?? []).every((name) => name in content) ? { action: 'accept', content } : pass;
  },
  sampling({ request }) {
    const texts = [request.messages.at(-1).content].flat().flatMap(({ text }) => text ?? []);
    const content = { type: 'text', text: `You said: ${texts.join(' ')}` };
    return { role: 'assistant', model: 'parrot', stopReason: 'endTurn', content };
  },
  approval: () => pass, // whether a tool may run is for a person to say
};

const { host, username: token } = new URL(process.env.NATS_URL ?? '');
const nats = await connect({ servers: host, token });
process.once('SIGINT', () => nats.drain()).once('SIGTERM', () => nats.drain());
const questions = nats.subscribe(`troupe.ask.${caller}.>`, { queue: 'answer' });
await nats.flush();
console.log(`answering on ${questions.getSubject()}`);
for await (const message of questions) {
  const question = message.json();
  message.respond(JSON.stringify(answers[question.kind](question)));
}
