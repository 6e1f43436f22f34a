import { describe, expect, test } from 'vitest';
import type { Catalog } from '../../src/catalog/catalog.ts';
import { catalog, entriesOf, pagesOf, viewOf } from '../support/catalog.ts';
import { cpuMs } from '../support/effort.ts';

async function list(it: Catalog, server: string, uris: string[], templates: string[] = []): Promise<void> {
  it.set(
    server,
    'resources',
    await entriesOf(
      'resources',
      uris.map((uri) => ({ uri, name: uri })),
    ),
  );
  it.set(
    server,
    'templates',
    await entriesOf(
      'templates',
      templates.map((uriTemplate) => ({ uriTemplate })),
    ),
  );
}
const urisIn = (view: Parameters<typeof pagesOf>[0]) =>
  pagesOf(view, 'resources')
    .flat()
    .map(({ uri }) => uri);
const templatesIn = (view: Parameters<typeof pagesOf>[0]) =>
  pagesOf(view, 'templates')
    .flat()
    .map((each) => each.uriTemplate);

describe('a resource behind one endpoint', () => {
  test('keeps its URI while one server alone lists it, and is read there', async () => {
    await using it = await catalog();
    await list(it, 'a', ['file:///a', '__proto__']);
    await list(it, 'b', ['file:///b']);
    const view = viewOf(it, ['a', 'b']);
    expect(urisIn(view)).toEqual(['file:///a', '__proto__', 'file:///b']);
    expect(view.findUri('file:///b')).toEqual({ server: 'b', name: 'file:///b' });
    expect(view.findUri('__proto__')).toEqual({ server: 'a', name: '__proto__' });
    expect(view.findUri('file:///c')).toBeUndefined();
    expect(view.uriOf('a', 'file:///a')).toBe('file:///a');
  });

  test('is qualified for each server when two list it, and the plain URI leads to neither', async () => {
    await using it = await catalog();
    await list(it, 'a', ['file:///x', 'file:///a']);
    await list(it, 'b_c', ['file:///x']);
    const view = viewOf(it, ['a', 'b_c']);
    expect(urisIn(view)).toEqual(['troupe+a:file:///x', 'file:///a', 'troupe+b.c:file:///x']);
    expect(view.findUri('file:///x')).toBeUndefined();
    expect(view.findUri('troupe+b.c:file:///x')).toEqual({ server: 'b_c', name: 'file:///x' });
    expect(view.uriOf('b_c', 'file:///x')).toBe('troupe+b.c:file:///x');
  });

  test('goes on being known by its qualified URI when the other server is gone', async () => {
    await using it = await catalog();
    await list(it, 'a', ['file:///x']);
    await list(it, 'b', ['file:///x']);
    const servers = ['a', 'b'];
    const view = viewOf(it, servers);
    servers.pop();
    expect(urisIn(view)).toEqual(['file:///x']);
    expect(view.findUri('troupe+a:file:///x')).toEqual({ server: 'a', name: 'file:///x' });
    expect(view.findUri('troupe+b:file:///x')).toBeUndefined();
  });

  test('cannot speak for another server by looking qualified', async () => {
    await using it = await catalog();
    await list(it, 'evil', ['troupe+bank:x', 'TROUPE+bank:y'], ['troupe+bank:{x}', '{+anything}']);
    await list(it, 'bank', ['x']);
    const view = viewOf(it, ['evil', 'bank']);
    expect(urisIn(view)).toEqual(['troupe+evil:troupe+bank:x', 'troupe+evil:TROUPE+bank:y', 'x']);
    expect(view.findUri('troupe+bank:x')).toEqual({ server: 'bank', name: 'x' });
    expect(view.findUri('Troupe+Bank:y')).toEqual({ server: 'bank', name: 'y' });
    expect(view.findUri('troupe+evil:troupe+bank:x')).toEqual({ server: 'evil', name: 'troupe+bank:x' });
    expect(templatesIn(view)[0]).toBe('troupe+evil:troupe+bank:{x}');
    expect(view.uriOf('evil', 'troupe+bank:x')).toBe('troupe+evil:troupe+bank:x');
  });

  test('leads back from whatever URI the host is given', async () => {
    await using it = await catalog();
    await list(it, 'a', ['u:1', 'u:2'], ['t:{x}', 'both:{x}']);
    await list(it, 'b', ['u:2', 'u:3'], ['both:{x}']);
    const view = viewOf(it, ['a', 'b', 'c']);
    for (const server of ['a', 'b', 'c'])
      for (const uri of ['u:1', 'u:2', 'u:3', 'u:4', 't:1', 'both:1', 'troupe+a:u:1', 'troupe+x:y', '', 'no uri'])
        expect(view.findUri(view.uriOf(server, uri))).toEqual({ server, name: uri });
  });

  test('has its own bytes but for what is put before its URI', async () => {
    await using it = await catalog();
    const text = '{ "name":"n", "uri" : "a:\\u0062\\/é" ,"size":1.0}';
    it.set('a', 'resources', await entriesOf('resources', [text, '{"uri":"b:","URI":"c:"}']));
    it.set('b', 'resources', await entriesOf('resources', [{ uri: 'a:b/é' }]));
    const page = viewOf(it, ['a', 'b']).page('resources', undefined, 1_000).toString();
    expect(page).toBe(`{"resources":[${text.replace('"a:', '"troupe+a:a:')},{"uri":"troupe+b:a:b/é"}]}`);
  });
});

describe('a resource that is in no list', () => {
  test('is read at the only server with a template for it', async () => {
    await using it = await catalog();
    await list(it, 'a', [], ['a://{x}', 'both://{x}']);
    await list(it, 'b', ['a://listed'], ['b://{x}', 'both://{+y}']);
    const view = viewOf(it, ['a', 'b']);
    expect(view.findUri('a://1')).toEqual({ server: 'a', name: 'a://1' });
    expect(view.findUri('a://listed')).toEqual({ server: 'b', name: 'a://listed' });
    expect(view.findUri('both://1')).toBeUndefined();
    expect(view.findUri('both://1/2')).toEqual({ server: 'b', name: 'both://1/2' });
    expect(view.uriOf('a', 'both://1')).toBe('troupe+a:both://1');
  });

  test('is read at the only server there is', async () => {
    await using it = await catalog();
    await list(it, 'a', []);
    expect(viewOf(it, ['a']).findUri('any://1')).toEqual({ server: 'a', name: 'any://1' });
    expect(viewOf(it, []).findUri('any://1')).toBeUndefined();
  });
});

describe('a template', () => {
  test('stays as it is unless two servers have the same, and leads to its server', async () => {
    await using it = await catalog();
    await list(it, 'a', [], ['a://{x}', 'file:///{path}']);
    await list(it, 'b', [], ['file:///{path}']);
    const view = viewOf(it, ['a', 'b']);
    expect(templatesIn(view)).toEqual(['a://{x}', 'troupe+a:file:///{path}', 'troupe+b:file:///{path}']);
    expect(view.findUri('a://{x}')).toEqual({ server: 'a', name: 'a://{x}' });
    expect(view.findUri('troupe+b:file:///notes')).toEqual({ server: 'b', name: 'file:///notes' });
    expect(view.findUri('troupe+b:file:///{path}')).toEqual({ server: 'b', name: 'file:///{path}' });
    expect(view.findUri('file:///{path}')).toBeUndefined();
  });

  test('does not make reading slow, however many a server has', async () => {
    await using it = await catalog();
    await list(
      it,
      'a',
      [],
      Array.from({ length: 20_000 }, (_, i) => `${'{+x}a'.repeat(10)}${i}`),
    );
    await list(it, 'b', [], ['b://{x}']);
    const view = viewOf(it, ['a', 'b']);
    const uri = `b://${'a'.repeat(2_000)}`;
    expect(cpuMs(() => expect(view.findUri(uri)).toEqual({ server: 'b', name: uri }))).toBeLessThan(1_000);
  });
});

describe('a resource that only a tool names', () => {
  const tools = (...uris: string[]) =>
    entriesOf(
      'tools',
      uris.map((resourceUri, index) => ({ name: `show${index}`, inputSchema: {}, _meta: { ui: { resourceUri } } })),
    );
  const named = (view: Parameters<typeof pagesOf>[0]) =>
    pagesOf(view, 'tools')
      .flat()
      .map(({ _meta }) => _meta.ui?.resourceUri ?? _meta['ui/resourceUri']);

  test('is read at the server of that tool', async () => {
    await using it = await catalog();
    await list(it, 'a', ['file:///a']);
    await list(it, 'b', ['file:///b']);
    it.set('b', 'tools', await tools('ui://panel'));
    const view = viewOf(it, ['a', 'b']);
    expect(view.findUri('ui://panel')).toEqual({ server: 'b', name: 'ui://panel' });
    expect(named(view)).toEqual(['ui://panel']);
    expect(view.findUri('ui://other')).toBeUndefined();
  });

  test('is qualified in each tool when two servers have it, as it would be in the list', async () => {
    await using it = await catalog();
    await list(it, 'a', []);
    await list(it, 'b', []);
    it.set('a', 'tools', await tools('ui://panel', 'ui://mine'));
    const old = { name: 'old', inputSchema: {}, _meta: { 'ui/resourceUri': 'ui://panel', rest: 1 } };
    it.set('b', 'tools', await entriesOf('tools', [old]));
    const view = viewOf(it, ['a', 'b']);
    expect(named(view)).toEqual(['troupe+a:ui://panel', 'ui://mine', 'troupe+b:ui://panel']);
    expect(view.findUri('ui://panel')).toBeUndefined();
    expect(view.findUri('troupe+b:ui://panel')).toEqual({ server: 'b', name: 'ui://panel' });
    expect(named(viewOf(it, ['a'], { isSingle: true }))).toEqual(['ui://panel', 'ui://mine']);
  });

  test('belongs to the server that lists it, and tools are others when that changes', async () => {
    await using it = await catalog();
    await list(it, 'a', []);
    await list(it, 'b', []);
    it.set('b', 'tools', await tools('ui://panel'));
    const view = viewOf(it, ['a', 'b']);
    const before = view.hash('tools');
    await list(it, 'a', ['file:///x']);
    expect(view.hash('tools')).toBe(before);
    await list(it, 'a', ['ui://panel']);
    expect([urisIn(view), named(view)]).toEqual([['ui://panel'], ['troupe+b:ui://panel']]);
    expect(view.hash('tools')).not.toBe(before);
  });
});
