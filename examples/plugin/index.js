// @ts-check
// Says on the bus when a server has reached one of the configured states: `troupe.plugin.state-news.<server>`.

import { readOptions, z } from 'troupe/plugin';

const schema = z.strictObject({
  states: z.array(z.string()).min(1, 'must name a state').prefault(['ready', 'failed']),
});

/** @type {import('troupe/plugin').Plugin<z.output<typeof schema>>} */
export const plugin = {
  name: 'state-news',

  parse: (options) => readOptions('state-news', schema, options),

  async start(troupe, { states }) {
    const stop = troupe.watch(({ name, state, tools }) => {
      if (states.includes(state)) troupe.publish(name, JSON.stringify({ state, tools }));
    });
    troupe.logger.info({ states }, 'telling of states');
    return { [Symbol.asyncDispose]: async () => stop() };
  },
};
