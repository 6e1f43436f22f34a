// The words of roots: directories that servers may take for where they work. What servers are told of is always the real
// path of something that exists.

/** A root as servers are given it, and as hosts offer it. */
export type Root = { readonly uri: string; readonly name?: string };

/** Where a root comes from: the configuration, the owner of this machine with `troupe roots add`, or the host of a session. */
export type RootSource = 'config' | 'owner' | 'host';

/** A root as `troupe roots` shows it; one with a problem is not given to servers. */
export type RootView = Root & { readonly from: RootSource; readonly problem?: string };

/** Which roots a server's process is given depends on whose it is, and on which endpoints show its server. */
export type Audience = { readonly server: string; readonly principal: string; readonly onBehalfOf: string };

export const MAX_URI_BYTES = 4_096;
export const MAX_NAME_CHARACTERS = 200;
