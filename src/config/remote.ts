// The definition of a server behind an address: its address, its transport, its headers and its credentials.
// Addresses and headers may hold secrets: no sentence repeats them.

import { dirname, resolve } from 'node:path';
import { readRegular } from '../files/regular.ts';
import { isPrivate, urlOf } from './addresses.ts';
import { check, written } from './complaints.ts';
import { complete, expandTexts, isObject, type Raw, type Surroundings, withoutRepeats } from './definition.ts';
import type { Report } from './file/document.ts';
import { ADDRESS_KEYS, type OAuthSettings, type RemoteServer, remoteSchema } from './schema.ts';

type Transport = RemoteServer['transport'];

const TRANSPORTS: Record<string, Transport> = {
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  sse: 'sse',
  ws: 'ws',
  websocket: 'ws',
};
/** A process that dies five times in a minute is broken; a server elsewhere may only be away, and is tried for ever. */
const PATIENCE_MS = [500, 2_000, 10_000, 30_000];
/** Headers that say how a message travels: only the transport can set them. */
const TRANSPORT_HEADERS =
  /^(host|connection|content-(length|type)|transfer-encoding|upgrade|te|trailer|accept|last-event-id|mcp-.*)$/i;

export function readRemote(
  name: string,
  raw: Raw,
  surroundings: Surroundings,
  report: Report,
): RemoteServer | undefined {
  const key = ADDRESS_KEYS.find((each) => Object.hasOwn(raw, each)) ?? 'url';
  const quiet = withoutRepeats(report);
  const form = { known: [...Object.keys(remoteSchema.shape), key], expanded: [key, 'headers'] };
  const { [key]: url, ...rest } = complete(raw, form, surroundings, quiet);
  const { data, findings } = check(remoteSchema, { ...rest, url, ...settingsOf(rest, surroundings, quiet) });
  quiet.tell(findings.map((finding) => (finding.keys[0] === 'url' ? calledBy(key, finding) : finding)));
  if (!data) return undefined;
  const { headers = {}, type } = data;
  const { oauth, ...settings } = data['x-troupe'];
  const about = { name, key, report };
  const address = readAddress(data.url, type, about);
  const credentials = readOAuth(oauth, surroundings.path, report);
  if (!address || !credentials) return undefined;
  return { ...address, name, headers: readHeaders(headers, report), oauth: credentials, settings };
}

/** The complaint names the key that the file has for the address, such as `serverUrl`. */
const calledBy = <Finding extends { keys: readonly unknown[]; message: string }>(key: string, finding: Finding) => ({
  ...finding,
  keys: [key, ...finding.keys.slice(1)] as string[],
  message: finding.message.replace(/^url\b/, key),
});

function settingsOf(rest: Raw, { env }: Surroundings, report: Report): { 'x-troupe': unknown } {
  const settings = rest['x-troupe'] ?? {};
  if (!isObject(settings)) return { 'x-troupe': settings };
  const { restart = {}, oauth } = settings;
  const patient = isObject(restart) ? { backoffMs: PATIENCE_MS, ...restart } : restart;
  const expanded = oauth !== undefined && { oauth: expandTexts(oauth, ['x-troupe', 'oauth'], env, report) };
  return { 'x-troupe': { ...settings, restart: patient, ...expanded } };
}

type About = { readonly name: string; readonly key: string; readonly report: Report };

function readAddress(written: string, type: string | undefined, { name, key, report }: About) {
  if (written.includes('${')) return undefined; // a variable that is not set was complained of already
  const judged = judgeAddress(written, type, name);
  if ('problem' in judged) {
    report.complain({ keys: [key], at: 'value', message: `${key} ${judged.problem}` });
    return undefined;
  }
  if (!judged.isSafe) {
    const remedy = `use ${judged.transport === 'ws' ? 'wss' : 'https'}`;
    const message = `${key} is not encrypted, so that anybody on the way can read what is sent; ${remedy}`;
    report.warn({ keys: [key], at: 'value', message });
  }
  return { transport: judged.transport, url: judged.url };
}

type Judged =
  | { readonly transport: Transport; readonly url: string; readonly isSafe: boolean }
  | { readonly problem: string };

/** The address and its transport, or what is wrong with them: the end of a sentence that begins with the key. */
export function judgeAddress(written: string, type: string | undefined, name: string): Judged {
  const url = urlOf(written);
  if (!url || !/^(https?|wss?):$/.test(url.protocol) || url.hostname === '')
    return { problem: 'must be an address such as "https://example.com/mcp" or "wss://example.com/mcp"' };
  if (url.username !== '' || url.password !== '')
    return { problem: `must not hold a user or a password; put them into headers, or use \`troupe login ${name}\`` };
  const isSocket = url.protocol.startsWith('ws');
  const transport = type === undefined ? (isSocket ? 'ws' : 'http') : (TRANSPORTS[type] ?? 'http');
  if (isSocket !== (transport === 'ws')) {
    const schemes = transport === 'ws' ? 'ws:// or wss://' : 'http:// or https://';
    return { problem: `must begin with ${schemes} because of its type` };
  }
  const isSafe = /^(https|wss):$/.test(url.protocol) || isPrivate(url.hostname);
  url.hash = ''; // never sent
  return { transport, url: url.href, isSafe };
}

function readHeaders(headers: Record<string, string>, report: Report): Record<string, string> {
  const entries = Object.entries(headers).filter(([header]) => {
    if (!TRANSPORT_HEADERS.test(header)) return true;
    report.warn({
      keys: ['headers', header],
      at: 'key',
      message: `${written(['headers', header])} is left out: troupe sets it itself`,
    });
    return false;
  });
  return Object.fromEntries(entries.map(([header, value]) => [header, value.trim()]));
}

type Written = OAuthSettings & { readonly privateKeyFile?: string };

function readOAuth({ privateKeyFile, ...oauth }: Written, path: string, report: Report): OAuthSettings | undefined {
  if (privateKeyFile === undefined) return oauth;
  try {
    return { ...oauth, privateKey: readRegular(resolve(dirname(path), privateKeyFile)).toString('utf8') };
  } catch {
    const message = 'x-troupe.oauth.privateKeyFile cannot be read; correct the path or its permissions';
    report.complain({ keys: ['x-troupe', 'oauth', 'privateKeyFile'], at: 'value', message });
    return undefined;
  }
}
