// The names of all attacks, by the surface that they are made on. docs/ATTACKS.md says in a line each what is tried, and a test
// compares the two; each surface is a file here, and the compiler asks it for every attack of its list.

export const ATTACKS = {
  'http-gate': [
    'foreign hosts and pages',
    'guessed tokens',
    'broken framing',
    'foreign WebSockets',
    'slowloris',
    'another user of the machine',
  ],
  messages: [
    'deep nesting',
    'long ids',
    'smuggled newlines',
    'batch bombs',
    'duplicate keys',
    'odd values',
    'prototype names',
  ],
  principals: [
    'sessions of others',
    'tasks of others',
    'questions of others',
    'requests of others',
    'reply injection',
    'forged events',
    'guessed ids',
  ],
  approvals: ['other spellings', 'every door', 'approved while cancelled', 'a foreign approver', 'a caller that left'],
  servers: [
    'too many tools',
    'endless pages',
    'compressed bombs',
    'endless streams',
    'redirects',
    'costly forms',
    'addresses of other kinds',
    'notification floods',
    'answers to nobody',
    'death in every call',
    'frames beyond what servers read',
    'secrets on stderr',
    'a way back in',
    'escaped processes',
  ],
  bus: ['long callers', 'long replies', 'garbage headers', 'foreign objects'],
  shortage: ['descriptors', 'sessions', 'callers', 'disk'],
  files: ['a removed state directory', 'planted files', 'a configuration without end'],
  kills: ['acknowledged tasks'],
} as const;

export type Surface = keyof typeof ATTACKS;
export type AttackOf<S extends Surface> = (typeof ATTACKS)[S][number];
