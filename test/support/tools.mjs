// Programs that tests and benchmarks run but the project must not depend on: as dependencies they would shadow `node`
// in every npm script, or weigh more than the rest together. Each is installed once, into a folder of its own.

import { access, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';

// The package `node` only runs a script that installs the one of this platform; we name that one ourselves.
const NODE = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';

/** The only place that names their versions: package, version, and which of its commands is meant. */
const TOOLS = {
  node: [`${NODE}-${process.platform}-${process.arch}`, '24.21.0', 'node'],
  conformance: ['@modelcontextprotocol/conformance', '0.1.16', 'conformance'],
  'conformance-next': ['@modelcontextprotocol/conformance', '0.2.0-alpha.12', 'conformance'],
  inspector: ['@modelcontextprotocol/inspector', '2.12.0', 'mcp-inspector'],
  supergateway: ['supergateway', '4.0.0', 'supergateway'],
  'mcp-proxy': ['mcp-proxy', '6.7.19', 'mcp-proxy'],
};

const found = new Map();

/** The file of the tool's command: a binary for `node`, a script to run with it for the others. */
export function toolPath(name) {
  if (!found.has(name)) found.set(name, locate(name));
  return found.get(name);
}

export const toolVersion = (name) => TOOLS[name][1];

/** For vitest's `globalSetup`: no test should have to wait. What cannot be had fails only the tests that want it. */
export async function setup() {
  await Promise.allSettled(['node', 'conformance', 'conformance-next', 'inspector'].map(toolPath));
}

/** The folder of exactly that version of a package of the registry. */
export async function packageHome(id, version) {
  const { pathsOf } = await import('../../dist/src/config/paths.js');
  const parent = join(pathsOf(process.env).cache, 'test-tools');
  const folder = join(parent, `${id.replace(/^@/, '').replace('/', '-')}-${version}`);
  const home = join(folder, 'node_modules', id);
  if (!(await exists(join(home, 'package.json')))) await install(`${id}@${version}`, parent, folder);
  return home;
}

/** The file of one of a package's commands; a package with one command needs no name for it. */
export async function commandOf(home, command) {
  const { bin } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'));
  return join(home, typeof bin === 'string' ? bin : (bin[command] ?? Object.values(bin)[0]));
}

async function locate(name) {
  const [id, version, command] = TOOLS[name] ?? [];
  if (!id) throw new Error(`there is no test tool ${name}; there are ${Object.keys(TOOLS).join(', ')}`);
  return commandOf(await packageHome(id, version), command);
}

/** One rename at the end: whoever else installs or looks sees all of it or nothing. */
async function install(wanted, parent, folder) {
  await mkdir(parent, { recursive: true });
  const draft = await mkdtemp(join(parent, '.install-'));
  try {
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    await execa('npm', ['install', '--prefix', draft, ...options, wanted], { stdin: 'ignore', timeout: 300_000 });
    await rename(draft, folder).catch(async (error) => {
      if (!(await exists(folder))) throw error; // else another run was faster, and its copy is as good
    });
  } catch (error) {
    throw new Error(`${wanted} could not be installed into ${parent}: ${error.shortMessage ?? error.message}`);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

const exists = (path) =>
  access(path).then(
    () => true,
    () => false,
  );
