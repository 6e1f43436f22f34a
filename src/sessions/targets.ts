// From the name by which a host calls something to the server that has it, and the params as that server knows them.

import type { View } from '../catalog/view.ts';
import { withMember, withTextAt } from '../protocol/edit.ts';
import { errorObject, failureOf, TroupeError } from '../protocol/failures.ts';
import { elements, member, textAt } from '../protocol/json.ts';
import { hasName, rowOf, type TargetPath } from '../protocol/methods.ts';
import { OPEN_BRACKET } from '../protocol/scan.ts';

export type Target = { readonly server: string; readonly name: string; readonly params: Buffer };

/** MCP has a code of its own for a resource that is not there. */
export class NotFound extends TroupeError {
  readonly uri: string;
  constructor(uri: string) {
    super('unknownName', `no server here has the resource ${uri.slice(0, 200)}; resources/list shows what there is`);
    this.uri = uri;
  }
}

export function targetOf(view: View, method: string, params: Buffer): Target {
  const { target, refers } = rowOf(method) ?? {};
  if (target) return located(view, target, params);
  const type = textAt(params, ['ref', 'type']) ?? '';
  const reference = refers && Object.hasOwn(refers, type) ? refers[type] : undefined;
  if (!reference) throw new TroupeError('invalid', `ref.type must be ${Object.keys(refers ?? {}).join(' or ')}`);
  const { server, params: known } = located(view, reference, params);
  return { server, name: '', params: known };
}

const located = (view: View, { kind, at }: TargetPath, params: Buffer): Target =>
  hasName(kind) ? named(view, kind, params, at) : resource(view, params, at);

function named(view: View, kind: 'tools' | 'prompts', params: Buffer, path: readonly string[]): Target {
  const name = textAt(params, path);
  if (!name) throw new TroupeError('invalid', `${path.join('.')} must be the name of one of the ${kind}`);
  const found = view.find(kind, name);
  if (!found)
    throw new TroupeError(
      'unknownName',
      `there is no ${kind.slice(0, -1)} ${name.slice(0, 128)}; ${kind}/list shows them`,
    );
  return { server: found.server, name: found.name, params: renamed(params, path, name, found.name) };
}

export function resource(view: View, params: Buffer, path: readonly string[] = ['uri']): Target {
  const uri = textAt(params, path);
  if (uri === undefined) throw new TroupeError('invalid', `${path.join('.')} must be the URI of a resource`);
  const found = view.findUri(uri);
  if (!found) throw new NotFound(uri);
  const { server, name } = found;
  return { server, name, params: renamed(params, path, uri, name) };
}

const renamed = (params: Buffer, path: readonly string[], from: string, to: string): Buffer =>
  from === to ? params : (withTextAt(params, path, to) ?? params);

/** The result of a read with the URIs that the host knows: the one that it asked for, and those of parts of it. */
export function withAskedUris(result: Buffer, own: string, asked: string): Buffer {
  const contents = member(result, 'contents');
  if (contents?.[0] !== OPEN_BRACKET) return result;
  const parts = [...elements(contents)].map((part) => {
    const uri = textAt(part, ['uri']);
    if (!uri?.startsWith(own)) return part;
    return withTextAt(part, ['uri'], asked + uri.slice(own.length)) ?? part;
  });
  const list = Buffer.concat([
    Buffer.from('['),
    ...parts.flatMap((part, at) => (at > 0 ? [COMMA, part] : [part])),
    Buffer.from(']'),
  ]);
  return withMember(result, 'contents', list);
}

const COMMA = Buffer.from(',');

/** The error object of whatever went wrong with a request of a host. */
export function errorOf(error: unknown): Buffer {
  if (error instanceof NotFound) return rpcError(-32002, error.message, { uri: error.uri });
  return errorObject(failureOf(error));
}

export const rpcError = (code: number, message: string, data?: object): Buffer =>
  Buffer.from(JSON.stringify({ code, message, ...(data && { data }) }));
