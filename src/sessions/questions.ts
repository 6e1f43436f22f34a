// Questions that this host was asked, each on the line of the call that caused it. The host answers with a message of its
// own; when the call is over, or another has answered, the question is withdrawn.

import type { Answer, Ask, Asking } from '../calls/call.ts';
import { askFrame, notificationFrame } from '../protocol/compose.ts';
import { codecOf } from '../protocol/eras.ts';
import { elements, member, textAt } from '../protocol/json.ts';
import { OPEN_BRACKET } from '../protocol/scan.ts';
import type { World } from '../world/world.ts';
import type { Line } from './host.ts';
import type { Identity } from './ports.ts';

export type Questions = ReturnType<typeof createQuestions>;
/** The line of a call, for as long as the call is not answered. */
export type OpenLine = { readonly line: Line; isOpen: boolean };

type Asked = Pick<Identity, 'era' | 'capabilities'>;

const MAX_OPEN = 100;
const EMPTY = Buffer.alloc(0);

/** `deliver` is for messages about a call that is over. */
export function createQuestions(host: Asked, deliver: (frame: Buffer) => void, world: Pick<World, 'random'>) {
  const open = new Map<string, (answer: Answer) => void>();
  // Another daemon may ask the same host, and the answers come to either.
  const prefix = world.random(6).toString('base64url');
  let sequence = 0;

  return {
    ask(to: OpenLine, { method, params, answer }: Ask): Asking | undefined {
      if (!canAnswer(host, method, params) || open.size >= MAX_OPEN) return undefined;
      const id = `"${prefix}-${++sequence}"`;
      const tell = (frame: Buffer): void => (to.isOpen ? to.line.tell(frame) : deliver(frame));
      open.set(id, (given) => open.delete(id) && answer(given));
      to.line.tell(askFrame(id, method, params));
      return {
        withdraw() {
          if (open.delete(id)) tell(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id}}`)));
        },
        complete: (about) => tell(notificationFrame('notifications/elicitation/complete', about)),
      };
    },
    /** Whether this host could answer such a question, if it were asked. */
    canAnswer: (method: string, params: Buffer): boolean => canAnswer(host, method, params),
    /** False for an answer to nothing that we asked. */
    answered(id: string, answer: Answer): boolean {
      const settle = open.get(id);
      settle?.(answer);
      return settle !== undefined;
    },
    /** The person has done what an address asked for; the call that asked goes on. */
    elicited: (params: Buffer): void => deliver(notificationFrame('notifications/elicitation/complete', params)),
    /** Whether this host knows what a url elicitation is. */
    handlesUrls: handlesUrls(host),
  };
}

function canAnswer(host: Asked, method: string, params: Buffer): boolean {
  const { elicitation, sampling } = host.capabilities;
  if (method === 'sampling/createMessage') return sampling !== undefined && canSample(host, params);
  if (method !== 'elicitation/create') return false;
  return textAt(params, ['mode']) === 'url' ? handlesUrls(host) : elicitation?.form !== undefined;
}

const handlesUrls = ({ capabilities }: Asked): boolean => capabilities.elicitation?.url !== undefined;

function canSample({ era, capabilities }: Asked, params: Buffer): boolean {
  if (capabilities.sampling?.tools !== undefined) return true;
  const messages = [...elements(member(params, 'messages') ?? EMPTY)];
  const contents = messages.map((message) => member(message, 'content') ?? EMPTY);
  if (!codecOf(era).allowsContentLists && contents.some(isList)) return false;
  const blocks = contents.flatMap((content) => (isList(content) ? [...elements(content)] : [content]));
  const isToolBlock = (block: Buffer): boolean => textAt(block, ['type'])?.startsWith('tool_') === true;
  return !['tools', 'toolChoice'].some((key) => member(params, key)) && !blocks.some(isToolBlock);
}

const isList = (value: Buffer): boolean => value[0] === OPEN_BRACKET;
