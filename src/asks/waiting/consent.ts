// What is asked before a call may run, and what its caller is told when it may not.

import type { Call } from '../../calls/call.ts';
import type { Failure } from '../../protocol/failures.ts';
import { namesEachOnce, spansOf } from '../../protocol/json.ts';
import type { AskOutcome, Question } from '../ask.ts';
import { shownName as shown } from '../notice.ts';

const NOTHING = Buffer.from('{}');

/** The question, or why nobody can be asked: what is shown must be what the server would act on. */
export function approvalOf({ name, server, params }: Call): Question | Failure {
  const [span, another] = spansOf(params, 'arguments');
  const invalid = (why: string): Failure => ({
    code: 'invalid',
    delivery: 'not sent',
    server,
    message: `the call of ${shown(name)} of ${server} ${why}`,
  });
  if (another) return invalid('has its arguments twice; send them once');
  const args = span ? params.subarray(span.from, span.to) : NOTHING;
  if (!namesEachOnce(args))
    return invalid('has a name twice in its arguments, or very many; send each once, and fewer');
  return { kind: 'approval', message: `${shown(name)} of ${server} wants to run`, arguments: args };
}

export type Refusal = {
  readonly outcome: AskOutcome;
  /** Who ended the question, or why it could not be asked. */
  readonly by: string;
  /** The command that would have answered it. */
  readonly command: string;
  readonly waitedMs: number;
};

export function notApproved({ name, server }: Call, { outcome, by, command, waitedMs }: Refusal): Failure {
  const tool = `tool ${shown(name)} of ${server}`;
  const fail = (code: Failure['code'], message: string): Failure => ({ code, delivery: 'not sent', message, server });
  if (outcome === 'denied')
    return fail('unauthorized', `${tool} was not approved (declined by ${by || 'the answerer'}); it was not called`);
  if (outcome === 'expired' && by) return fail('busy', `${tool} was not called: ${by}`);
  if (outcome === 'expired')
    return fail(
      'timeout',
      `nobody approved ${tool} within ${Math.round(waitedMs / 1000)} s (\`${command}\` would have); ` +
        'it was not called; call it again while somebody looks at `troupe inbox`',
    );
  return fail('unavailable', `${tool} was not called: the question whether it may run was withdrawn; try again`);
}
