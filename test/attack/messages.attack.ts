// Messages that no client would send, through every door: what must come back is one right refusal, or the bytes unchanged.

import { headers as natsHeaders } from 'nats';
import { expect } from 'vitest';
import { fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { DOOR_NAMES, type Host, hostAt } from './doors.ts';
import { anywhere, ours, type Stage, surface, type Target } from './kit.ts';

const MB = 2 ** 20;
const frame = (id: string, method: string, params = '{}') =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`;
const isError =
  (...codes: number[]) =>
  (message: any) =>
    codes.includes(message?.error?.code);
const INVALID = isError(-32600, -32602, -32700);

/** Doors whose messages are not lines, and may hold line ends. */
const NO_LINES = ['http', 'sse', 'websocket', 'nats'] as const;

async function atEachDoor(
  { target }: Stage,
  doors: readonly (typeof DOOR_NAMES)[number][],
  work: (host: Host) => Promise<void>,
  opening = {},
): Promise<void> {
  for (const door of doors) {
    await using host = await hostAt(door, target, opening);
    await work(host);
  }
}

/** A session that was spoken nonsense to is still there, or was closed; a new one is served at once. */
const isServed = async (host: Host, target: Target): Promise<void> => {
  await using next = await hostAt(host.door, target);
  expect((await next.ask('ping')).result).toEqual({});
};

const overNats = async ({ nats }: Target, subject: string, body: string | Buffer, all: Record<string, string> = {}) => {
  const headers = natsHeaders();
  for (const [key, value] of Object.entries(all)) headers.set(key, value);
  const reply = await nats.connection.request(subject, body, { timeout: 10_000, headers });
  return { code: reply.headers?.get('Nats-Service-Error-Code') ?? '', text: reply.string() };
};

surface(
  'messages',
  {
    'deep nesting': anywhere(async (stage) => {
      const { target, attempt } = stage;
      const deep = 4_000_000;
      const closed = `${'['.repeat(deep)}${']'.repeat(deep)}`;
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        // The managed broker takes 8 MB in one message.
        const count = host.door === 'nats' ? deep / 2 : 2 * deep;
        const open = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(count - 100)}`;
        await attempt(`${host.door}: ${count} that never close`, async () => {
          await host.send(open);
          await host.until(INVALID);
          await isServed(host, target);
        });
        const whole = host.door === 'nats' ? `${'['.repeat(deep / 4)}${']'.repeat(deep / 4)}` : closed;
        await attempt(`${host.door}: as many as fit that do`, async () => {
          await host.send(frame('2', 'ping', `{"a":${whole.slice(whole.length / 2 - MB, whole.length / 2 + MB)}}`));
          await host.until((message) => message.id === 2 || INVALID(message));
          await isServed(host, target);
        });
      });
      await attempt('over NATS', async () => {
        const { code } = await overNats(target, 'troupe.inbox', '['.repeat(8_000_000));
        expect(['400', '404']).toContain(code);
      });
    }, 180),

    'long ids': anywhere(async (stage) => {
      const { target, attempt } = stage;
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        for (const id of ['x'.repeat(MB), '\u0000'.repeat(100_000), '𝄞'.repeat(100_000)])
          await attempt(`${host.door}: an id of ${id.length}`, async () => {
            await host.send(frame(JSON.stringify(id), 'ping'));
            await host.until((message) => message.id === id || INVALID(message));
          });
        await attempt(`${host.door}: a number of a million digits`, async () => {
          await host.send(frame('9'.repeat(MB), 'ping'));
          await eventually(() => host.heard.length > 1, 10_000);
          await isServed(host, target);
        });
      });
      await attempt('a request id of 6,000 letters over NATS', async () => {
        const long = { 'Troupe-Request-Id': 'x'.repeat(6_000) };
        expect((await overNats(target, 'troupe.inbox', '', long)).text).toBeDefined();
      });
    }),

    'smuggled newlines': ours(async (stage) => {
      const { target, attempt, d } = stage;
      const inner = '{"jsonrpc":"2.0","id":99,"method":"smuggled","params":{}}';
      const call = (id: number, args: string) =>
        frame(`${id}`, 'tools/call', `{"name":"records__echo","arguments":${args}}`);
      const inBlanks = [`{"message":\n"x"}`, `{\r\n"message":"x"\n}\n`, `{"message":"x"\n,\n"a":[\n\n]}`];
      const broken = [
        `{"message":"x\n${inner}\n"}`,
        `{}}\n${inner}\n{"a":{`,
        `{}}}\n${inner}`,
        `{"message":"x\r${inner}"}`,
      ];
      const escaped = [
        `{"message":"\\n${inner.replaceAll('"', '\\"')}\\n"}`,
        '{"message":"\\u000a\u2028\u2029\u0085"}',
      ];
      await atEachDoor(stage, NO_LINES, async (host) => {
        let id = 0;
        for (const args of [...inBlanks, ...escaped])
          await attempt(`${host.door}: ${args}`, async () => {
            const mine = ++id;
            await host.send(call(mine, args));
            expect((await host.until((message) => message.id === mine)).result).toBeDefined();
          });
        for (const args of broken)
          await attempt(`${host.door}: ${args}`, async () => {
            const before = host.heard.length;
            await host.send(call(++id, args));
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/-32700|-32600|-32602/), 10_000);
          });
        for (const name of ['records__echo\n', `records__echo\n${inner}`, `records__\n${inner}\n`])
          await attempt(`${host.door}: the tool ${JSON.stringify(name)}`, async () => {
            const { error } = await host.ask('tools/call', { name, arguments: {} });
            expect(error?.code).toBeLessThan(0);
          });
        await attempt(`${host.door}: a method`, async () => {
          const { error } = await host.ask(`ping"}\n${inner}`);
          expect(error?.code).toBe(-32601);
        });
      });
      await atEachDoor(stage, ['control', 'stdio'], async (host) => {
        for (const args of [...broken, ...escaped])
          await attempt(`${host.door}: ${args}`, async () => {
            await host.send(call(1_000, args));
            await isServed(host, target);
          });
      });
      for (const body of [...broken, `{"message":"x"}\n${inner}`])
        await attempt(`NATS: ${body}`, async () =>
          expect((await overNats(target, 'troupe.call.records.echo', body)).code).toBe('400'),
        );
      for (const body of [...inBlanks, ...escaped])
        await attempt(`NATS: ${body}`, async () =>
          expect((await overNats(target, 'troupe.call.records.echo', body)).code).toBe(''),
        );
      for (const tail of ['echo=0A', '=0A=7B=7D=0A', 'echo=0D=0A'])
        await attempt(`NATS: ${tail}`, async () =>
          expect((await overNats(target, `troupe.call.records.${tail}`, '{}')).code).toMatch(/^40[04]$/),
        );
      await attempt('its server was sent whole messages and no other', async () => {
        const { data } = await d.request('troupe.call.records.received', {});
        const methods = (data.structuredContent.value as string[]).map((line) => JSON.parse(line).method);
        expect(methods).toContain('tools/call');
        expect(methods).not.toContain('smuggled');
      });
    }),

    'batch bombs': anywhere(async (stage) => {
      const { target, attempt } = stage;
      const pings = (count: number) =>
        `[${Array.from({ length: count }, (_, id) => frame(`${id + 1}`, 'ping')).join()}]`;
      const nested = `${'['.repeat(1_000)}${frame('1', 'ping')}${']'.repeat(1_000)}`;
      const bombs = ['[]', '[[]]', '[null,1,"a",true]', nested, `[${','.repeat(1_000)}]`, pings(20_000)];
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        for (const bomb of bombs)
          await attempt(`${host.door}: ${bomb.slice(0, 20)}`, async () => {
            const before = host.heard.length;
            await host.send(bomb);
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/-32600|-32700/), 10_000);
            await isServed(host, target);
          });
      });
      for (const bomb of [...bombs, `[${`${frame('7', 'ping')},`.repeat(5_000)}${frame('7', 'ping')}]`])
        await attempt(`in 2025-03-26, which has batches: ${bomb.slice(0, 20)}`, async () => {
          await using host = await hostAt('websocket', target, { version: '2025-03-26' });
          const before = host.heard.length;
          await host.send(bomb);
          await eventually(() => host.heard.length > before, 20_000);
          await isServed(host, target);
        });
    }, 120),

    'duplicate keys': anywhere(async (stage) => {
      const { target, attempt } = stage;
      const twice = [
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"},"params":{}}',
        '{"jsonrpc":"2.0","jsonrpc":"1.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","result":{},"error":{}}',
        '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"ping"}',
      ];
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        for (const text of twice)
          await attempt(`${host.door}: ${text}`, async () => {
            const before = host.heard.length;
            await host.send(text);
            await host.ask('ping'); // what came before it has been looked at
            const answers = host.heard
              .slice(before)
              .filter((said) => /"id":[12][,}]/.test(said) || said.includes('"id":null'));
            expect(answers.length).toBeLessThanOrEqual(1);
            await isServed(host, target);
          });
      });
    }),

    'odd values': ours(async (stage) => {
      const { attempt, d } = stage;
      const kept = ['9007199254740993', '-0', '1e3', '1.50', '"\\ud800"', '"\\u0000"', '""', '-1'];
      const wrong = ['null', 'true', '{}', '[]', 'NaN', 'Infinity', '01', '+1', '.5', '0x1', "'a'"];
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        for (const id of kept)
          await attempt(`${host.door}: the id ${id}`, async () => {
            const before = host.heard.length;
            await host.send(frame(id, 'ping'));
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/"result":|-32600/), 10_000);
            const said = host.heard.slice(before).find((each) => each.includes('"result"'));
            if (said !== undefined) expect(said).toContain(`"id":${id}`);
          });
        for (const id of wrong)
          await attempt(`${host.door}: the id ${id}`, async () => {
            const before = host.heard.length;
            await host.send(frame(id, 'ping'));
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/-32600|-32700/), 10_000);
          });
        for (const text of ['\ufeff{}', '{"jsonrpc":2}', '""', '1', 'null', '{"jsonrpc":"2.0"}', '{"a":"\\x"}', '{,}'])
          await attempt(`${host.door}: ${text}`, async () => {
            const before = host.heard.length;
            await host.send(text);
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/-32600|-32700/), 10_000);
          });
        if (host.door !== 'websocket')
          await attempt(`${host.door}: bytes that are no text`, async () => {
            const before = host.heard.length;
            await host.send(Buffer.from('{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}', 'latin1'));
            await eventually(() => expect(host.heard.slice(before).join()).toMatch(/-32600|-32700/), 10_000);
          });
      });
      for (const args of ['{"a":1e400,"b":-0}', '{"a":"\\ud800"}', `{"a":${'9'.repeat(10_000)}}`, '{"a":1.0,"a":2}'])
        await attempt(`arguments arrive as they were sent: ${args.slice(0, 30)}`, async () => {
          const { text } = await d.request('troupe.call.echo.raw', args);
          expect(text).toContain(`"structuredContent":${args}`);
        });
    }),

    'prototype names': anywhere(async (stage) => {
      const { target, attempt } = stage;
      const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__', 'valueOf'];
      const isRefused = ({ error, result }: any): void => {
        expect(result).toBeUndefined();
        expect(error.code).not.toBe(-32603);
      };
      await atEachDoor(stage, DOOR_NAMES, async (host) => {
        for (const name of names) {
          await attempt(`${host.door}: the method ${name}`, async () => isRefused(await host.ask(name)));
          await attempt(`${host.door}: the tool ${name}`, async () =>
            isRefused(await host.ask('tools/call', { name, arguments: {} })),
          );
          await attempt(`${host.door}: the tool ${name}__${name}`, async () =>
            isRefused(await host.ask('tools/call', { name: `${name}__${name}`, arguments: {} })),
          );
          await attempt(`${host.door}: the task ${name}`, async () =>
            isRefused(await host.ask('tasks/get', { taskId: name })),
          );
        }
        await attempt(`${host.door}: a member`, async () => {
          await host.send(
            '{"jsonrpc":"2.0","id":5,"method":"ping","params":{"__proto__":{"polluted":1}},"__proto__":{"id":6}}',
          );
          await host.until((message) => message.id === 5);
        });
      });
      for (const name of names)
        await attempt(`the question ${name}`, async () => {
          const { code } = await overNats(target, `troupe.answer.${name}`, '{"action":"accept"}');
          expect(['400', '404']).toContain(code);
        });
    }),
  },
  { servers: { records: fixture('records') } },
);
