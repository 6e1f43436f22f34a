// The notifications of a server as we read them: what becomes part of a subject has a bound.

import { expect, test } from 'vitest';
import { readNotice } from '../../src/servers/connection/notices.ts';

test.each([
  ['warning', 'warning'],
  ['WARN', 'WARN'],
  ['l'.repeat(4_100), 'info'],
  [7, 'info'],
])('a line of the level %s is published as one of %s', (level, published) => {
  const params = Buffer.from(JSON.stringify({ level, data: 'x' }));
  expect(readNotice('notifications/message', params)).toEqual({ type: 'log', level: published, params });
});
