// Reads an address that a server wants a person to visit, and says what that person should look at before they go there.
// Nothing is ever fetched: the address is only taken apart, as a browser would.

import { isIPv4 } from 'node:net';
import { domainToUnicode } from 'node:url';

export type Address = {
  /** The whole address, spelled as a browser spells it: this is shown, and this is opened. */
  readonly href: string;
  /** The host with its port, if there is one, as it stands in `href`. */
  readonly host: string;
  /** Sentences for the person. */
  readonly warnings: string[];
};

const MAX_LENGTH = 8_192;

/** Nothing for what is no address of a web page, or one that not every reader would read the same way. */
export function readAddress(url: string): Address | undefined {
  if (url.length > MAX_LENGTH || !/^https?:\/\/[^/?#]/i.test(url) || UNREADABLE.test(url)) return undefined;
  if (!URL.canParse(url)) return undefined;
  const { href, host, hostname, protocol, username, password } = new URL(url);
  const isHere = isLoopback(hostname);
  const warnings = [
    protocol !== 'https:' && !isHere && 'It is not https: others on the way can read and change what you send.',
    (username || password) && `What stands before the @ is a user name or password; the address leads to ${host}.`,
    isNumeric(hostname) && !isHere && `The host ${hostname} is a number, not a name: nobody vouches for who it is.`,
    ...spellings(writtenHost(url), hostname),
  ];
  return {
    href,
    host,
    warnings: warnings.filter((warning) => typeof warning === 'string' && warning !== '') as string[],
  };
}

/** Characters that some readers drop, hide or turn around, and others do not; in a valid URL they are percent-encoded. */
const UNREADABLE = /[\s\p{C}\p{Z}\\]/u;

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127(\.\d+){3}$/.test(hostname);

const isNumeric = (hostname: string): boolean => isIPv4(hostname) || hostname.startsWith('[');

/** The host as the server wrote it. */
function writtenHost(url: string): string {
  const authority = url.replace(/^https?:\/\//i, '').split(/[/?#]/, 1)[0] ?? '';
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .replace(/:\d*$/, '')
    .toLowerCase();
}

function* spellings(written: string, hostname: string): Generator<string> {
  const shown = domainToUnicode(hostname).replace(/[\p{C}\p{Z}]/gu, '\ufffd') || hostname;
  if (/(^|\.)xn--/.test(hostname))
    yield `The host ${hostname} is shown as ${shown}: its letters may imitate another name.`;
  if (shown.split('.').some(isMixed)) yield `The host ${shown} mixes the letters of several scripts.`;
  if (written !== hostname && written !== shown) yield `The host is written ${written}, and leads to ${hostname}.`;
}

/** Whether scripts that look alike stand in one word. */
const isMixed = (label: string): boolean => SCRIPTS.filter((script) => script.test(label)).length > 1;

const SCRIPTS = [
  /\p{Script=Latin}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Georgian}/u,
];
