// What a person is told of an address before they go there, and which addresses they are never shown.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readAddress } from '../../src/asks/address.ts';

describe('readAddress', () => {
  it.each([
    ['https://mcp.example.com/ui/set_api_key?id=1#x', 'mcp.example.com'],
    ['https://example.com:8443/', 'example.com:8443'],
    ['http://localhost:3000/callback', 'localhost:3000'],
    ['http://127.0.0.1:9/', '127.0.0.1:9'],
    ['http://[::1]/', '[::1]'],
  ])('has nothing to say against %s', (url, host) => {
    expect(readAddress(url)).toEqual({ href: url, host, warnings: [] });
  });

  it.each([
    ['http://example.com/', 'example.com', ['It is not https']],
    ['http://localhost.example.com/', 'localhost.example.com', ['It is not https']],
    ['https://xn--80ak6aa92e.com/', 'xn--80ak6aa92e.com', ['xn--80ak6aa92e.com is shown as аррӏе.com']],
    ['https://аррӏе.com/', 'xn--80ak6aa92e.com', ['xn--80ak6aa92e.com is shown as аррӏе.com']],
    ['https://pаypal.com/', 'xn--pypal-4ve.com', ['is shown as pаypal.com', 'mixes the letters of several scripts']],
    ['https://google.com@evil.example/', 'evil.example', ['before the @', 'leads to evil.example']],
    ['https://user:pw@example.com/', 'example.com', ['before the @']],
    ['https://203.0.113.9/', '203.0.113.9', ['is a number, not a name']],
    ['https://[2001:db8::1]/', '[2001:db8::1]', ['is a number, not a name']],
    ['https://2130706433/', '127.0.0.1', ['is written 2130706433, and leads to 127.0.0.1']],
    ['https://ex%61mple.com/', 'example.com', ['is written ex%61mple.com, and leads to example.com']],
    ['https://ⓔxample.com/', 'example.com', ['is written ⓔxample.com, and leads to example.com']],
  ])('warns of %s', (url, host, warnings) => {
    const found = readAddress(url);
    expect(found?.host).toBe(host);
    for (const words of warnings) expect(found?.warnings.join(' ')).toContain(words);
  });

  it.each([
    ['', 'nothing'],
    ['example.com', 'no scheme'],
    ['/path', 'a path'],
    ['javascript:alert(1)', 'a script'],
    ['file:///etc/passwd', 'a file'],
    ['data:text/html,x', 'data'],
    ['mailto:a@example.com', 'mail'],
    ['https:example.com', 'no slashes'],
    ['https:///example.com', 'no host'],
    ['https://', 'no host at all'],
    ['https://exa mple.com', 'a space'],
    ['https://example.com/\u001b[2J', 'an escape'],
    ['https://exam\nple.com', 'a line break that browsers drop'],
    ['https://example.com/\u202emoc.live', 'text turned around'],
    ['https://good.example\\@evil.example/', 'a backslash'],
    ['https://example.com:99999/', 'a port that is none'],
    [`https://example.com/${'x'.repeat(8_192)}`, 'no end'],
  ])('does not take %j: %s', (url) => {
    expect(readAddress(url)).toBeUndefined();
  });

  it('shows an address that leads where it says, for all texts', () => {
    const part = fc.constantFrom(
      'https://',
      'http://',
      'a.example',
      'б',
      '@',
      ':',
      '/',
      '\\',
      '?',
      '#',
      '%2f',
      '。',
      '\u200d',
      '1',
      '[',
      ']',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webUrl(),
          fc.array(part).map((parts) => parts.join('')),
          fc.string({ unit: 'binary' }),
        ),
        (url) => {
          const found = readAddress(url);
          if (!found) return;
          expect(found.href).toMatch(/^https?:\/\/[\x21-\x7e]+$/);
          expect(found.href).toContain(found.host);
          expect(new URL(url).host).toBe(found.host);
          expect(found.warnings.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
