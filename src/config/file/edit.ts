// Adds a server to the configuration file or removes one, leaving everything else in it as the owner wrote it.

import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findNodeAtLocation, type Node } from 'jsonc-parser';
import { TroupeError } from '../../protocol/failures.ts';
import { check, formatComplaint } from '../complaints.ts';
import { isServerName, mendName, NAME_RULE } from '../names.ts';
import { judgeAddress } from '../remote.ts';
import { definitionSchema, remoteSchema, type ServerDefinition } from '../schema.ts';
import { type Document, parseDocument, readDocument } from './document.ts';
import { insertProperty, removeProperty } from './properties.ts';
import { replaceFile } from './replace.ts';

const NEW_FILE = '{\n  "mcpServers": {}\n}\n';

export function addServer(path: string, name: string, definition: ServerDefinition): void {
  if (!isServerName(name)) {
    const message = `The name ${JSON.stringify(name)} must match ${NAME_RULE}; call it "${mendName(name)}".`;
    throw new TroupeError('invalid', message);
  }
  const problem = problemOf(name, definition);
  if (problem !== undefined) throw new TroupeError('invalid', `Server "${name}" cannot be added: ${problem}.`);
  const file = fileOf(path);
  const document = file.exists ? read(file.path) : parseDocument(path, NEW_FILE);
  const servers = document.tree && findNodeAtLocation(document.tree, ['mcpServers']);
  if (servers && propertyOf(servers, name)) {
    throw new TroupeError('invalid', `Server "${name}" is already in ${path}; remove it first or choose another name.`);
  }
  write(file, added(document, servers, name, definition));
}

function problemOf(name: string, definition: ServerDefinition): string | undefined {
  const isRemote = 'url' in definition;
  const [finding] = (isRemote ? check(remoteSchema, definition) : check(definitionSchema, definition)).findings;
  if (finding) return finding.message;
  if (!isRemote || definition.url.includes('${')) return undefined; // only the daemon knows the variable's value
  const judged = judgeAddress(definition.url, definition.type, name);
  return 'problem' in judged ? `url ${judged.problem}` : undefined;
}

export function removeServer(path: string, name: string): void {
  const file = fileOf(path);
  const document = file.exists ? read(file.path) : undefined;
  const servers = document?.tree && findNodeAtLocation(document.tree, ['mcpServers']);
  const property = servers && propertyOf(servers, name);
  if (!document || !property) {
    throw new TroupeError(
      'unknownServer',
      `There is no server ${JSON.stringify(name)} in ${path}; nothing was removed.`,
    );
  }
  write(file, removeProperty(document.text, servers, property));
}

function added(document: Document, servers: Node | undefined, name: string, definition: ServerDefinition): string {
  const { text, tree, path } = document;
  const parent = servers ?? tree;
  if (parent?.type !== 'object') {
    throw new TroupeError(
      'invalid',
      `In ${path}, ${servers ? 'mcpServers' : 'the root'} is not an object; correct it first.`,
    );
  }
  return servers
    ? insertProperty(text, parent, name, definition)
    : insertProperty(text, parent, 'mcpServers', { [name]: definition });
}

function propertyOf(object: Node, name: string): Node | undefined {
  return object.children?.find((property) => property.children?.[0]?.value === name);
}

/** An edit of a file that cannot be read as a whole would be a guess. */
function read(path: string): Document {
  const document = readDocument(path);
  const [first] = document.complaints;
  if (first)
    throw new TroupeError('invalid', `The file cannot be edited until it is correct: ${formatComplaint(first)}.`);
  return document;
}

type File = { readonly path: string; readonly exists: boolean; readonly mode: number };

/** A file that is a link (dotfiles, say) is replaced where it really lies, and keeps its permissions. */
function fileOf(path: string): File {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats
    ? { path: realpathSync(path), exists: true, mode: stats.mode & 0o777 }
    : { path, exists: false, mode: 0o600 };
}

function write({ path, mode }: File, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, text, mode);
}
