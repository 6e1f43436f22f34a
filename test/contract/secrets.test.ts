// Which values of a configuration are secrets, and that none of them is left in what is said, however it is spelt there.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { secretsOf } from '../../src/config/secrets.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';

function found(file: object, env: NodeJS.ProcessEnv = {}): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-secrets-'));
  try {
    const path = join(folder, 'troupe.json');
    writeFileSync(path, JSON.stringify(file));
    const loaded = loadConfig(path, env);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.complaints));
    return [...secretsOf(loaded.config, env)];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
const stdio = (more: object) => ({ mcpServers: { s: { command: 'node', ...more } } });
const withEnv = (env: Record<string, string>) => found(stdio({ env }));

describe('what is a secret', () => {
  it.each([
    ['API_KEY', 'abcd'],
    ['DB_PASSWORD', 'pears'],
    ['GITHUB_TOKEN', 'ghp_abc'],
    ['githubPat', 'x1y2z3a4b5'],
    ['SESSION_COOKIE', 'production'],
    ['WHATEVER', 'f00d5afe77'],
    ['WHATEVER', 'correct horse battery staple'],
    ['WHATEVER', 'aGVsbG8/d29ybGQ='],
    ['WHATEVER', 'abcdefghijklmnopqrst'],
  ])('%s=%s', (name, value) => expect(withEnv({ [name]: value })).toContain(value));

  it.each([
    ['USE_AUTH', 'true'],
    ['AUTH', 'none'],
    ['AUTH_TYPE', 'bearer'],
    ['KEY', 'x'],
    ['TOKEN_FILE', '/home/ada/token'],
    ['HOME_DIRECTORY', '/home/ada/files'],
    ['NODE_ENV', 'production'],
    ['AWS_REGION', 'us-east-1'],
    ['MODEL', 'claude-sonnet-4-20250514'],
    ['MODEL', 'gpt-4o-mini'],
    ['LANGUAGE', 'en_US.UTF-8'],
    ['HOST', 'db.example.com'],
    ['BASE', 'https://example.com/api'],
    ['MAIL', 'ada@example.com'],
    ['PORT', '8080'],
    ['BIG', '1234567890'],
    ['NODE_OPTIONS', '--max-old-space-size=4096'],
  ])('%s=%s is none', (name, value) => expect(withEnv({ [name]: value })).toEqual([]));

  it('is the password of an address, the token behind Bearer, and what JSON holds', () => {
    expect(withEnv({ DATABASE: 'postgres://ada:s%40cret@db/x' })).toEqual(['s%40cret', 's@cret']);
    const headers = { Authorization: 'Bearer abc.def', 'X-Team': 'blue' };
    expect(found({ mcpServers: { s: { url: 'https://h/mcp?api_key=qqqq&page=1', headers } } })).toEqual([
      'Bearer abc.def',
      'abc.def',
      'qqqq',
    ]);
    expect(withEnv({ HEADERS: '{"Authorization":"Bearer ntn_1","Version":"2022"}' })).toContain('ntn_1');
    const basic = `Basic ${Buffer.from('ada:pears').toString('base64')}`;
    expect(found({ mcpServers: { s: { url: 'https://h/mcp', headers: { Authorization: basic } } } })).toContain(
      'pears',
    );
  });

  it('is an argument whose name says so, and a variable that was filled in', () => {
    const args = [
      '--api-key',
      'k1k1',
      '--token=t2t2',
      '-e',
      'MY_SECRET=s3s3',
      '--header',
      'Authorization: Bearer b4b4',
    ];
    expect(found(stdio({ args: [...args, '--verbose', 'x'] }))).toEqual(
      expect.arrayContaining(['k1k1', 't2t2', 's3s3', 'b4b4']),
    );
    expect(found(stdio({ args: [`\${HUSH}`, `\${HOME}`] }), { HUSH: 'f00d5afe77', HOME: '/home/ada' })).toEqual([
      'f00d5afe77',
    ]);
  });

  it('is every token, key and credential of troupe itself', () => {
    const http = { tokens: { alice: 'alice-token-0123456789' } };
    const oauth = { grant: 'client_credentials', clientId: 'id', clientSecret: 'oauth-hush' };
    const plugins = { sampling: { models: [{ apiKey: 'model-key' }] } };
    const nats = { url: 'nats://ada:pears@127.0.0.1:4222' };
    const far = { url: 'https://h/mcp', 'x-troupe': { oauth } };
    const secrets = found({ mcpServers: { far }, 'x-troupe': { http, plugins, nats } }, { NATS_TOKEN: 'nnnn' });
    expect(secrets.sort()).toEqual(['alice-token-0123456789', 'model-key', 'nnnn', 'oauth-hush', 'pears'].sort());
  });
});

describe('what is said', () => {
  it('holds no secret, however it is spelt', () => {
    const secret = fc.string({ unit: 'grapheme', minLength: 8, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 5 }), fc.string(), (values, around) => {
        const { learn, mask } = createSecrets();
        learn(values);
        for (const value of values)
          for (const spelt of [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]) {
            const masked = mask(`${around}${spelt}${around}`);
            expect(masked).not.toContain(spelt);
            expect(masked).toContain('[masked]');
          }
      }),
    );
  });

  it('keeps words that merely contain a short secret', () => {
    const { learn, mask } = createSecrets();
    learn(['pear', '1234']);
    expect(mask('pear, appear, pid 12345, (1234)')).toBe('[masked], appear, pid 12345, ([masked])');
    expect(createSecrets().mask('nothing is known')).toBe('nothing is known');
  });

  it('is masked in the log, whatever JSON makes of it, and the lines stay lines', () => {
    const folder = mkdtempSync(join(tmpdir(), 'troupe-secrets-'));
    try {
      const log = openLog(folder, 'info');
      log.secrets.learn(['two\nlines "quoted"', 'nabcdefg', 'pear']);
      log.logger.info({ deep: { list: ['two\nlines "quoted"'] }, pid: 7 }, 'a\nabcdefg two\nlines "quoted"');
      log.logger.info('plain');
      log.logger.info('token:\tpear, appear');
      log.close();
      const [first, second, third] = readFileSync(log.file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(first).toMatchObject({ deep: { list: ['[masked]'] }, pid: 7, msg: 'a\nabcdefg [masked]' });
      expect(second).toMatchObject({ msg: 'plain' });
      expect(third).toMatchObject({ msg: 'token:\t[masked], appear' });
      expect(log.mask('in an error: nabcdefg')).toBe('in an error: [masked]');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
