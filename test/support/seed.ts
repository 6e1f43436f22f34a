// Property tests draw the same cases in every run; another seed is a command away: TROUPE_SEED=7 npm test.

import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.TROUPE_SEED ?? 20_261_116) });
