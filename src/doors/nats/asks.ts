// The subjects on which people and services see the open questions and answer them: their own, and nobody else's. Whose a
// question is, is the tree they publish on; the question of another is answered exactly like one that does not exist.

import { json } from '../../bus/frames.ts';
import type { AskRequest } from '../../bus/subjects.ts';
import { unknownAsk } from '../../operations/asks.ts';
import { OPERATIONS, type Ports } from '../../operations/operations.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { isJsonObject, textAt } from '../../protocol/json.ts';
import { askPage } from './pages.ts';
import { callerOf } from './requests.ts';
import { type FamilyOptions, type Page, type Responder, succeeded } from './responder.ts';

/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 1_024;

export function serveAsks(
  responder: Responder,
  { subjects, daemon, family, ports }: FamilyOptions<Pick<Ports, 'inbox'>>,
): void {
  responder.serve<AskRequest>({
    patterns: subjects.askPatterns(daemon, family),
    parse: subjects.parseAsk,
    async serve(request, msg) {
      const body = await responder.reply.requestBody(msg);
      if (request.verb === 'inbox') return inboxPage(ports, request, body, responder.room(PAGE_ROOM));
      return succeeded(json(await OPERATIONS.answer.run(ports, { id: request.id, body }, callerOf(request))));
    },
    elsewhere: ['unknownName'],
    unknown: ({ id }) => unknownAsk(id),
  });
}

async function inboxPage(
  ports: Pick<Ports, 'inbox'>,
  request: AskRequest,
  body: Buffer,
  maxBytes: number,
): Promise<Page> {
  if (body.length > 0 && !isJsonObject(body))
    throw new TroupeError('malformed', 'the body must be empty, {"id":"…"} or {"cursor":"…"}');
  const id = textAt(body, ['id']);
  const { asks } = await OPERATIONS.inbox.run(ports, {}, callerOf(request));
  const wanted = id === undefined ? asks : asks.filter((ask) => ask.id === id);
  return askPage(wanted, textAt(body, ['cursor']), maxBytes);
}
