import { expect, test, vi } from 'vitest';
import { createSubscriptions, LEASE_MS } from '../../src/servers/subscriptions.ts';

test('a lease ends although the server refuses to be told', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const subscriptions = createSubscriptions();
    const told: string[] = [];
    await subscriptions.connect(async (method) => {
      told.push(method);
      if (method === 'resources/unsubscribe') throw new Error('never heard of it');
    });
    await subscriptions.add('file:///a', 'me');
    vi.advanceTimersByTime(LEASE_MS + 1);
    await subscriptions.expire();
    expect(told).toEqual(['resources/subscribe', 'resources/unsubscribe']);
    expect(subscriptions.isEmpty).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
