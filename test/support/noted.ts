// Rows of no meaning, for tests of the store itself: those of events that the bus refused, of which only the newest thousand are kept.

/** The values of `putAside`. */
export const noted = (id: string, why = '') => [id, 'subject', 0, why, 1] as const;
