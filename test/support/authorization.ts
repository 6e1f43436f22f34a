// A real authorization server (oidc-provider) and a real MCP server that lets nobody in without its tokens, both on the
// loopback. The person who logs in agrees to everything at once; `browse` is that person's browser.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

export type AuthorityOptions = {
  readonly accessTtl?: number;
  readonly clients?: object[];
  /** The person says no. */
  readonly denies?: boolean;
  /** Changes the metadata before it goes out. */
  readonly metadata?: (metadata: Record<string, unknown>) => void;
};
export type Authority = Awaited<ReturnType<typeof authority>>;

export async function authority({ accessTtl = 60, clients = [], denies = false, metadata }: AuthorityOptions = {}) {
  // It comes without types.
  const { default: Provider } = (await import('oidc-provider' as string)) as any;
  const http = createServer();
  const issuer = await listening(http);
  const granted: string[] = [];
  const registered: any[] = [];
  const provider = new Provider(issuer, {
    clients,
    scopes: ['openid', 'offline_access', 'mcp:read', 'mcp:write'],
    jwks: undefined,
    cookies: { keys: ['a key of the tests'] },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: (_: unknown, client: any) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: accessTtl,
      ClientCredentials: accessTtl,
      Interaction: 60,
      Grant: 3600,
      Session: 3600,
      RefreshToken: 3600,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, audience: string) => ({
          ...{ scope: 'mcp:read mcp:write', audience, accessTokenTTL: accessTtl, accessTokenFormat: 'opaque' },
        }),
        useGrantedResource: () => true,
      },
    },
  });
  provider.use(async (ctx: any, next: () => Promise<void>) => {
    await next();
    if (ctx.path === '/token') granted.push(`${ctx.oidc?.params?.grant_type} ${ctx.status}`);
    if (ctx.path === '/reg' && ctx.status === 201) registered.push(ctx.body);
    if (ctx.path.startsWith('/.well-known/')) metadata?.(ctx.body);
  });
  const ask = provider.callback() as RequestListener;
  http.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    if (!request.url?.startsWith('/interaction/')) return ask(request, response);
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    const result = denies
      ? { error: 'access_denied' }
      : prompt.name === 'login'
        ? LOGIN
        : await consent(params, session);
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
  });

  async function consent(params: any, { accountId }: any) {
    const grant = new provider.Grant({ clientId: params.client_id, accountId });
    grant.addOIDCScope(params.scope ?? '');
    for (const each of [params.resource].flat()) grant.addResourceScope(each, params.scope ?? '');
    return { consent: { grantId: await grant.save() } };
  }

  return {
    issuer,
    /** The grant and the status of each request for tokens. */
    granted,
    registered,
    isGood: async (token: string, resource: string): Promise<{ scope: string } | undefined> => {
      const found = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
      return found && !found.isExpired && [found.aud].flat().includes(resource)
        ? { scope: found.scope ?? '' }
        : undefined;
    },
    [Symbol.asyncDispose]: () => closed(http),
  };
}

const LOGIN = { login: { accountId: 'someone' } };

export type ResourceOptions = {
  readonly authority: Authority;
  /** The scope that is asked for in the challenge, and needed. */
  readonly scope?: string;
  /** Whether it has metadata that name its authorization server. */
  readonly hasMetadata?: boolean;
  /** The methods for which it lets everybody in. */
  readonly open?: readonly string[];
};

/** An MCP server with one tool, at `/mcp`. */
export async function resource(options: ResourceOptions) {
  const { authority: trusted, scope = 'mcp:read', hasMetadata = true, open = [] } = options;
  const http = createServer();
  const origin = await listening(http);
  const url = `${origin}/mcp`;
  const document = `${origin}/.well-known/oauth-protected-resource/mcp`;
  const needed = { scope };
  const revoked = new Set<string>();
  let calls = 0;
  http.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    if (hasMetadata && `${origin}${request.url}` === document)
      return response.end(JSON.stringify({ resource: url, authorization_servers: [trusted.issuer] }));
    if (request.url !== '/mcp') return response.writeHead(404).end();
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const good = revoked.has(token) ? undefined : await trusted.isGood(token, url);
    const pointer = `Bearer resource_metadata="${document}", scope="${needed.scope}"`;
    const isOpen = open.includes(String(request.headers['mcp-method']));
    if (!good && !isOpen) return response.writeHead(401, { 'www-authenticate': pointer }).end();
    const isShort = !isOpen && needed.scope.split(' ').some((each) => !good?.scope.split(' ').includes(each));
    const short = { 'www-authenticate': `${pointer}, error="insufficient_scope"` };
    if (isShort) return response.writeHead(403, short).end();
    calls++;
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    const server = new McpServer({ name: 'guarded', version: '1' });
    server.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hello' }] }));
    await server.connect(transport as never);
    await transport.handleRequest(request, response);
  });
  return {
    ...{ url, needed, revoked },
    calls: () => calls,
    [Symbol.asyncDispose]: () => closed(http),
  };
}

/** Opens a page as a browser would: follows redirects, keeps cookies, runs nothing. */
export async function browse(start: string): Promise<{ status: number; url: string; text: string }> {
  const jar = new Map<string, string>();
  let url = start;
  for (let hops = 0; hops < 12; hops++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const each of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      jar.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) return { status: response.status, url, text: await response.text() };
    url = new URL(location, url).href;
  }
  throw new Error('the redirects go round in circles');
}

async function listening(http: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

async function closed(http: ReturnType<typeof createServer>): Promise<void> {
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
}
