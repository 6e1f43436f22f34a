// `x-troupe.http`: the HTTP door's settings, and where it listens once the command line has had its say.

import { z } from 'zod';
import { hostAndPort, urlOf } from './addresses.ts';
import { isServerName, NAME_RULE } from './names.ts';
import { count, duration, size, word } from './units.ts';

/** Where hosts look for us; free on most machines. */
export const USUAL_PORT = 7411;

/** A shorter token could be guessed, and tokens are all that stands between the network and the servers. */
const SHORTEST_TOKEN = 16;
const MIB = 1024 ** 2;
const ADDRESS = 'must be an address such as "127.0.0.1:7411"; port 0 picks a free one';

const token = word
  .min(SHORTEST_TOKEN, `must have at least ${SHORTEST_TOKEN} characters`)
  .regex(/^[\w.~+/-]+=*$/, 'must be of letters, digits and - . _ ~ + / only, as a bearer token is');

export const httpSchema = z
  .strictObject({
    enabled: z.boolean().prefault(true),
    /** HOST:PORT; a port of 0 picks one. Absent: 127.0.0.1 and the usual port, or another if that is taken. */
    address: word.refine((written) => hostAndPort(written) !== undefined, ADDRESS).exactOptional(),
    /** Bearer tokens by the name of their principal, beside the owner's, which the daemon makes itself. */
    tokens: z
      .record(z.string(), token)
      .refine((tokens) => Object.keys(tokens).every(isServerName), `must name each principal ${NAME_RULE}`)
      .refine(isOneToOne, 'must give each principal a token of its own')
      .prefault({}),
    /** Whether everybody must show a token, the owner on this machine too. */
    requireToken: z.boolean().prefault(false),
    /** Pages of browsers that may come in, such as https://app.example.com. */
    origins: z
      .array(word.refine(isOrigin, 'must be an origin such as "https://app.example.com", without a path'))
      .prefault([]),
    /** Further values of the `Host` header that mean this door, such as the name of a reverse proxy. */
    hosts: z
      .array(word.regex(/^[\w.-]+(:\d+)?$|^\[[\da-fA-F:]+\](:\d+)?$/, 'must be a host such as "mcp.example.com"'))
      .prefault([]),
    maxBodyBytes: size(1024, 1024 * MIB).prefault('16MB'),
    maxSessions: count(1).prefault(1000),
    /** Open streams of one session. */
    maxStreams: count(1).prefault(64),
    sessionIdleMs: duration(1).prefault('24h'),
    keepAliveMs: duration(1).prefault('15s'),
  })
  .meta({ id: 'HttpSettings' });
export type HttpSettings = Readonly<z.output<typeof httpSchema>>;

export type HttpAddress = {
  readonly host: string;
  readonly port: number;
  /** Whether the port was chosen by the user: then no other will do, unless it is 0. */
  readonly isExplicit: boolean;
};

/** Where to listen, or nothing when the door is off. `flag` is what `up --http` was given, and beats the file. */
export function addressOf(
  flag: string | undefined,
  settings: HttpSettings,
  instance?: string,
): HttpAddress | undefined {
  if (flag === 'off' || (flag === undefined && !settings.enabled)) return undefined;
  const found = hostAndPort(flag ?? settings.address ?? '');
  // The port of the file is that of the daemon without a name; all others have one each.
  if (flag === undefined && instance !== undefined)
    return { host: found?.host ?? '127.0.0.1', port: 0, isExplicit: false };
  return found ? { ...found, isExplicit: true } : { host: '127.0.0.1', port: USUAL_PORT, isExplicit: false };
}

export const isHttpFlag = (flag: string): boolean => flag === 'off' || hostAndPort(flag) !== undefined;

function isOneToOne(tokens: Record<string, string>): boolean {
  return new Set(Object.values(tokens)).size === Object.keys(tokens).length;
}

function isOrigin(written: string): boolean {
  const url = urlOf(written);
  return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === written.toLowerCase();
}
