// Answers are checked in a thread of their own: what is wrong is said by the name of the field, and no schema holds up
// the event loop, another server's questions, or the end of the process.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { createValidator } from '../../src/asks/forms/validator.ts';
import { eventually } from '../support/eventually.ts';

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://example.com/it',
  type: 'object',
  properties: {
    age: { type: 'integer', minimum: 18 },
    email: { type: 'string', format: 'email' },
    day: { type: 'string', format: 'date' },
    color: { type: 'string', oneOf: [{ const: '#f00', title: 'Red' }] },
    pets: { type: 'array', items: { enum: ['cat', 'dog'] }, minItems: 1, maxItems: 2 },
    code: { type: 'string', pattern: '^[A-Z]{2}$', maxLength: 2 },
    phone: { type: 'string', format: 'phone' },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    constructor: { type: 'string' },
    'a/b~c': { type: 'boolean' },
  },
  required: ['age'],
};
const backtracking = bytes({ type: 'object', properties: { it: { type: 'string', pattern: '^(a+)+$' } } });
const endless = bytes({ it: `${'a'.repeat(40)}!` });
const easy = bytes({ type: 'object' });
const LATE = 'the schema took too long to check; ask the server for a simpler one';

const validator = createValidator();
afterAll(() => validator.close());
const check = (content: unknown, of: unknown = schema) => validator.check(bytes(of), bytes(content));

describe('check', () => {
  it.each<object>([
    { age: 18 },
    { age: 30, email: 'a@example.com', day: '2026-02-28', color: '#f00', pets: ['cat', 'dog'], code: 'AB' },
    { age: 30, phone: 'any', note: null, constructor: 'x', 'a/b~c': true },
    { age: 30, more: ['a', 'b'] },
  ])('lets %j pass', async (content) => {
    expect(await check(content)).toBeUndefined();
  });

  it.each([
    [{ age: 17 }, 'age: must be >= 18'],
    [{ age: '18' }, 'age: must be integer'],
    [{}, 'age: is required'],
    [{ age: 18, email: 'nobody' }, 'email: must match format "email"'],
    [{ age: 18, day: '2026-02-30' }, 'day: must match format "date"'],
    [{ age: 18, color: 'Red' }, 'color: must be one of #f00'],
    [{ age: 18, pets: ['cow'] }, 'pets: must be one of cat, dog'],
    [{ age: 18, pets: [] }, 'pets: must NOT have fewer than 1 items'],
    [{ age: 18, code: 'ab' }, 'code: must match pattern "^[A-Z]{2}$"'],
    [{ age: 18, note: 5 }, 'note: must be string'],
    [{ age: 18, constructor: 5 }, 'constructor: must be string'],
    [{ age: 18, 'a/b~c': 5 }, 'a/b~c: must be boolean'],
    [{ age: 18, more: { deep: 1 } }, 'more: must be string,number,boolean,array'],
    [[], 'the content must be a JSON object'],
    ['x', 'the content must be a JSON object'],
  ])('says of %j what is wrong', async (content, sentence) => {
    expect(await check(content)).toBe(sentence);
  });

  it('takes nothing else where the server wants nothing else', async () => {
    expect(await check({ x: 1 }, { type: 'object', additionalProperties: false })).toBe('x: is not one of the fields');
  });

  it('says so when the answer can be read in two ways, or not at all', async () => {
    expect(await validator.check(easy, Buffer.from('{"a":1,"\\u0061":2}'))).toBe('a: must not be given twice');
    expect(await validator.check(easy, Buffer.from('{"a":'))).toBe('the content must be a JSON object');
    expect(await validator.check(easy, Buffer.alloc(1_048_577))).toBe('the content must not be larger than 1 MB');
  });

  it('takes patterns that were written without Unicode in mind', async () => {
    const old = { type: 'object', properties: { it: { type: 'string', pattern: '^[\\w-.]+$' } } };
    expect(await check({ it: 'a-b.c' }, old)).toBeUndefined();
    expect(await check({ it: 'a b' }, old)).toContain('it: must match pattern');
  });

  it('refuses a schema that is no form', async () => {
    expect(await check({}, { type: 'object', properties: { it: { type: 'object' } } })).toContain('a form is flat');
  });
});

describe('a schema that takes too long', () => {
  it('is given up without holding up the event loop, and the next check is as good as ever', async () => {
    let turns = 0;
    const turning = setInterval(() => turns++, 5);
    const started = performance.now();
    expect(await validator.check(backtracking, endless)).toBe(LATE);
    clearInterval(turning);
    expect(performance.now() - started).toBeGreaterThan(250);
    expect(turns).toBeGreaterThan(10);
    expect(await check({ age: 17 })).toBe('age: must be >= 18');
  });

  it('holds up its own server only: the others take turns', async () => {
    const ended: string[] = [];
    const one = (who: string, of: Buffer, content: Buffer) =>
      validator.check(of, content, who).then(() => void ended.push(who));
    const all = [
      ...Array.from({ length: 3 }, () => one('slow', backtracking, endless)),
      ...Array.from({ length: 2 }, () => one('quick', easy, bytes({}))),
    ];
    await Promise.all(all);
    expect(ended).toEqual(['slow', 'quick', 'slow', 'quick', 'slow']);
  });
});

describe('the thread', () => {
  /** Every worker that this process starts meanwhile. */
  function watched() {
    const workers: Worker[] = [];
    const ended: Worker[] = [];
    const onWorker = (worker: Worker) => {
      workers.push(worker);
      worker.once('exit', () => ended.push(worker));
    };
    process.on('worker', onWorker);
    return { workers, ended, [Symbol.dispose]: () => void process.off('worker', onWorker) };
  }

  it('starts with the first check, stays for the next, and goes when there is none for a while', async () => {
    using seen = watched();
    const own = createValidator({ idleMs: 300 });
    expect(seen.workers).toHaveLength(0);
    for (let each = 0; each < 20; each++) expect(await own.check(easy, bytes({}))).toBeUndefined();
    expect(seen.workers).toHaveLength(1);
    await eventually(() => seen.ended.length === 1);
    expect(await own.check(easy, bytes({}))).toBeUndefined();
    expect(seen.workers).toHaveLength(2);
    own.close();
    await eventually(() => seen.ended.length === 2);
  });

  it('is replaced when a check took too long', async () => {
    using seen = watched();
    const own = createValidator({ budgetMs: 50 });
    expect(await own.check(backtracking, endless)).toBe(LATE);
    expect(await own.check(easy, bytes({}))).toBeUndefined();
    await eventually(() => seen.workers.length === 2 && seen.ended.length === 1);
    own.close();
  });

  it('tells those who still wait when it is closed', async () => {
    const own = createValidator();
    const checks = [own.check(backtracking, endless), own.check(easy, bytes({}))];
    const told = Promise.allSettled(checks);
    own.close();
    for (const each of await told) expect(each).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    await expect(own.check(easy, bytes({}))).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('keeps a process alive for its answer, and not longer', async () => {
    const module = new URL('../../dist/src/asks/forms/validator.js', import.meta.url).href;
    const script = `import { createValidator } from '${module}';
      const checked = await createValidator().check(Buffer.from('{"type":"object"}'), Buffer.from('[]'));
      process.stdout.write(checked);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 });
    expect((await run).stdout).toBe('the content must be a JSON object');
  });
});
