// Real servers from the npm registry, as people install them: which version, how it is started so that it needs no network
// and no account, and what is asked of it. The keys are made up, and a service that a server insists on asking is at port 9 of
// this machine, where nobody is.
//
//   calls      tool, arguments, and `told` if what the server says meanwhile, progress and questions, is compared, too. The
//              first is made again by other ways and after a restart, so it must not depend on the others.
//   prompts    name, arguments
//   asks       method, params: anything else
//   volatile   what two runs of the server itself may differ in
//   differs    what troupe changes, and why that is right
//   files      what is in `{place}`, a directory of the server's own, before each of the two runs
//   path       where a server listens that speaks HTTP; its port is in `PORT`, and in place of `{port}`
//   isNewer    it does not run on the oldest Node that troupe runs on

const ISO_TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?/g;
const CLOCK_TIME = /\d{1,2}:\d\d:\d\d [AP]M/g;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** A call with nothing in it, to a tool that wants something: how a server refuses is an answer, too. */
const refused = (tool) => [tool, {}];
const EVERYTHING_ASKS = [
  ['ping', {}],
  ['logging/setLevel', { level: 'warning' }],
  ['resources/read', { uri: 'demo://resource/dynamic/text/1' }],
  ['resources/read', { uri: 'demo://nowhere' }],
  ['resources/subscribe', { uri: 'demo://resource/dynamic/text/1' }],
  ['resources/unsubscribe', { uri: 'demo://resource/dynamic/text/1' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' } },
  ],
];
const BOTH = 'speaks 2026-07-28, too';

export const servers = [
  {
    name: 'everything',
    ...{ package: '@modelcontextprotocol/server-everything', version: '2026.8.31' },
    calls: [
      ['echo', { message: 'Grüße \u{1F3AD} \\ " \n end' }],
      ['get-sum', { a: 2, b: 0.1 }],
      ['get-tiny-image', {}],
      ['get-annotated-message', { messageType: 'error', includeImage: true }],
      ['get-structured-content', { location: 'New York' }],
      ['get-resource-links', { count: 3 }],
      ['get-resource-reference', { resourceType: 'Text', resourceId: 2 }],
      ['trigger-long-running-operation', { duration: 0.2, steps: 2 }, 'told'],
      ['trigger-elicitation-request', {}, 'told'],
      ['trigger-sampling-request', { prompt: 'Hm?', maxTokens: 10 }, 'told'],
      refused('get-sum'),
    ],
    prompts: [
      ['simple-prompt', {}],
      ['args-prompt', { city: 'Zürich', state: 'ZH' }],
    ],
    asks: EVERYTHING_ASKS,
    volatile: [CLOCK_TIME],
  },
  {
    name: 'everything-http',
    ...{ package: '@modelcontextprotocol/server-everything', version: '2026.8.31' },
    ...{ args: ['streamableHttp'], path: '/mcp' },
    calls: [
      ['echo', { message: 'over HTTP' }],
      ['get-sum', { a: 1e21, b: -0.5 }],
      ['get-tiny-image', {}],
      ['get-structured-content', { location: 'Chicago' }],
      ['trigger-long-running-operation', { duration: 0.2, steps: 2 }, 'told'],
      ['trigger-elicitation-request', {}, 'told'],
      ['trigger-sampling-request', { prompt: 'Hm?', maxTokens: 10 }, 'told'],
      refused('echo'),
    ],
    prompts: [['args-prompt', { city: 'Bern' }]],
    asks: EVERYTHING_ASKS,
    volatile: [CLOCK_TIME],
  },
  {
    name: 'filesystem',
    ...{ package: '@modelcontextprotocol/server-filesystem', version: '2026.8.31' },
    args: ['{place}'],
    files: {
      'notes.txt': 'one\ntwo\nthree\n',
      'deep/down/ünïcode.md': '# Zeile\u2028zwei\n',
      'dot.png': 'not a picture',
    },
    calls: [
      ['read_text_file', { path: '{place}/notes.txt' }],
      ['read_text_file', { path: '{place}/deep/down/ünïcode.md' }],
      ['read_media_file', { path: '{place}/dot.png' }],
      ['list_directory', { path: '{place}' }],
      ['directory_tree', { path: '{place}' }],
      ['search_files', { path: '{place}', pattern: '**/*.md' }],
      ['list_allowed_directories', {}],
      ['write_file', { path: '{place}/new.txt', content: 'written\n' }],
      ['edit_file', { path: '{place}/new.txt', edits: [{ oldText: 'written', newText: 'edited' }] }],
      ['move_file', { source: '{place}/new.txt', destination: '{place}/moved.txt' }],
      ['read_multiple_files', { paths: ['{place}/moved.txt', '{place}/gone.txt'] }],
      ['read_text_file', { path: '/etc/passwd' }],
    ],
  },
  {
    name: 'memory',
    ...{ package: '@modelcontextprotocol/server-memory', version: '2026.8.31' },
    env: { MEMORY_FILE_PATH: '{place}/memory.jsonl' },
    calls: [
      ['search_nodes', { query: 'nobody' }],
      ['create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: ['writes ✎'] }] }],
      ['create_relations', { relations: [{ from: 'Ada', to: 'Ada', relationType: 'knows' }] }],
      ['add_observations', { observations: [{ entityName: 'Ada', contents: ['counts'] }] }],
      ['read_graph', {}],
      ['add_observations', { observations: [{ entityName: 'Nobody', contents: ['x'] }] }],
      ['delete_entities', { entityNames: ['Ada'] }],
      ['open_nodes', { names: ['Ada'] }],
    ],
  },
  {
    name: 'sequential-thinking',
    ...{ package: '@modelcontextprotocol/server-sequential-thinking', version: '2026.8.31' },
    env: { DISABLE_THOUGHT_LOGGING: 'true' },
    calls: [
      refused('sequentialthinking'),
      ['sequentialthinking', { thought: 'first', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }],
      ['sequentialthinking', { thought: 'second', nextThoughtNeeded: false, thoughtNumber: 2, totalThoughts: 2 }],
    ],
  },
  {
    name: 'fetch',
    ...{ package: 'mcp-fetch-server', version: '1.1.2' },
    calls: [['fetch_txt', { url: 'http://127.0.0.1:9/' }], refused('fetch_json'), refused('fetch_html')],
  },
  {
    name: 'github',
    ...{ package: '@modelcontextprotocol/server-github', version: '2025.4.8' },
    env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'made-up' },
    calls: [refused('create_issue'), refused('search_repositories')],
  },
  {
    name: 'gitlab',
    ...{ package: '@modelcontextprotocol/server-gitlab', version: '2025.4.25' },
    env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'made-up', GITLAB_API_URL: 'http://127.0.0.1:9/api/v4' },
    calls: [refused('create_issue'), ['search_repositories', { search: 'x' }]],
  },
  {
    name: 'slack',
    ...{ package: '@modelcontextprotocol/server-slack', version: '2025.4.25' },
    env: { SLACK_BOT_TOKEN: 'xoxb-made-up', SLACK_TEAM_ID: 'T0' },
    calls: [refused('slack_post_message'), refused('slack_get_user_profile')],
  },
  {
    name: 'google-maps',
    ...{ package: '@modelcontextprotocol/server-google-maps', version: '0.6.2' },
    env: { GOOGLE_MAPS_API_KEY: 'made-up' },
    calls: [refused('maps_distance_matrix'), refused('maps_elevation')],
  },
  {
    name: 'postgres',
    ...{ package: '@modelcontextprotocol/server-postgres', version: '0.6.2' },
    args: ['postgres://nobody@127.0.0.1:9/nothing'],
    calls: [['query', { sql: 'select 1' }]],
  },
  {
    name: 'code-runner',
    ...{ package: 'mcp-server-code-runner', version: '0.1.8' },
    calls: [
      ['run-code', { languageId: 'javascript', code: "console.log('sum', 1 + 1, 'ü')" }],
      ['run-code', { languageId: 'klingon', code: 'qapla' }],
      refused('run-code'),
    ],
  },
  {
    name: 'context7',
    ...{ package: '@upstash/context7-mcp', version: '4.1.1' },
    calls: [refused('resolve-library-id'), refused('query-docs')],
    note: BOTH,
  },
  {
    name: 'context7-http',
    ...{ package: '@upstash/context7-mcp', version: '4.1.1' },
    ...{ args: ['--transport', 'http', '--port', '{port}'], path: '/mcp' },
    calls: [refused('resolve-library-id'), refused('query-docs')],
    note: BOTH,
  },
  {
    name: 'tavily',
    ...{ package: 'tavily-mcp', version: '0.2.22' },
    env: { TAVILY_API_KEY: 'made-up', HTTPS_PROXY: 'http://127.0.0.1:9' },
    calls: [
      ['tavily_search', { query: 'x' }],
      ['tavily_extract', { urls: ['http://127.0.0.1:9/'] }],
    ],
  },
  {
    name: 'bitwarden',
    ...{ package: '@bitwarden/mcp-server', version: '2026.7.0' },
    env: { BW_SESSION: 'made-up' },
    calls: [refused('get'), refused('list'), refused('create_item')],
  },
  {
    name: 'brave-search',
    ...{ package: '@brave/brave-search-mcp-server', version: '2.1.4' },
    env: { BRAVE_API_KEY: 'made-up' },
    calls: [refused('brave_web_search'), refused('brave_summarizer')],
  },
  {
    name: 'map',
    ...{ package: '@modelcontextprotocol/server-map', version: '2.0.3' },
    args: ['--stdio'],
    calls: [['show-map', { west: 8.4, south: 47.3, east: 8.6, north: 47.4, label: 'Zürich' }], refused('geocode')],
    volatile: [UUID],
  },
  {
    name: 'clock',
    ...{ package: '@modelcontextprotocol/server-basic-vanillajs', version: '2.0.3' },
    path: '/mcp',
    calls: [['get-time', {}]],
    volatile: [ISO_TIME],
  },
  {
    name: 'shadertoy',
    ...{ package: '@modelcontextprotocol/server-shadertoy', version: '2.0.3' },
    args: ['--stdio'],
    calls: [['render-shadertoy', { fragmentShader: 'void mainImage(out vec4 c, in vec2 p) { c = vec4(1.0); }' }]],
    volatile: [UUID],
  },
  {
    name: 'git',
    ...{ package: '@cyanheads/git-mcp-server', version: '2.15.3' },
    ...{ isNewer: true, files: { 'repository/a.txt': 'a\n' } },
    env: { LOGS_DIR: '{place}/logs', MCP_LOG_LEVEL: 'error' },
    calls: [
      ['git_status', { path: '{place}' }],
      ['git_init', { path: '{place}/repository' }],
      ['git_status', { path: '{place}/repository' }],
      refused('git_blame'),
    ],
    volatile: [ISO_TIME, UUID],
  },
  {
    name: 'obsidian',
    ...{ package: 'obsidian-mcp', version: '2.0.1' },
    ...{ isNewer: true, args: ['{place}'] },
    files: { '.obsidian/app.json': '{}', 'Idea.md': '---\ntags: [a]\n---\n# Idea\nlinks to [[Other]] ✓\n' },
    calls: [
      ['obsidian_list_vaults', {}],
      ['obsidian_read_note', { vault: 'obsidian', path: 'Idea.md' }],
      ['obsidian_create_note', { vault: 'obsidian', path: 'New.md', content: '# New\n' }],
      ['obsidian_search_vault', { vault: 'obsidian', query: 'links' }],
      refused('obsidian_read_note'),
      refused('obsidian_search_vault'),
    ],
    ...{ volatile: [UUID], note: BOTH },
  },
  {
    name: 'playwright',
    ...{ package: '@playwright/mcp', version: '0.0.83' },
    args: ['--headless', '--executable-path', '{place}/no-browser'],
    calls: [refused('browser_navigate'), refused('browser_press_key')],
  },
  {
    name: 'chrome-devtools',
    ...{ package: 'chrome-devtools-mcp', version: '1.11.0' },
    ...{ isNewer: true, args: ['--headless', '--executablePath', '{place}/no-browser', '--no-usage-statistics'] },
    calls: [refused('click'), refused('evaluate_script')],
  },
  {
    name: 'chart',
    ...{ package: '@antv/mcp-server-chart', version: '0.9.10' },
    env: { VIS_REQUEST_SERVER: 'http://127.0.0.1:9/' },
    calls: [refused('generate_area_chart'), refused('generate_mind_map')],
  },
  {
    name: 'notion',
    ...{ package: '@notionhq/notion-mcp-server', version: '2.5.2' },
    env: { NOTION_TOKEN: 'ntn_made_up', BASE_URL: 'http://127.0.0.1:9' },
    calls: [
      ['API-get-self', {}],
      ['API-retrieve-a-page', { page_id: '1' }],
    ],
  },
  {
    name: 'supabase',
    ...{ package: '@supabase/mcp-server-supabase', version: '0.13.0' },
    args: ['--access-token', `sbp_${'0'.repeat(40)}`, '--api-url', 'http://127.0.0.1:9'],
    calls: [],
    note: `${BOTH}; without its service it cannot list its tools, so none is called`,
  },
  {
    name: 'exa',
    ...{ package: 'exa-mcp-server', version: '3.4.1' },
    env: { EXA_API_KEY: 'made-up' },
    calls: [refused('web_search_exa'), refused('web_fetch_exa')],
  },
  {
    name: 'firecrawl',
    ...{ package: 'firecrawl-mcp', version: '3.26.0' },
    env: { FIRECRAWL_API_KEY: 'fc-made-up', FIRECRAWL_API_URL: 'http://127.0.0.1:9' },
    calls: [refused('firecrawl_map'), refused('firecrawl_extract')],
  },
  {
    name: 'eslint',
    ...{ package: '@eslint/mcp', version: '0.3.13' },
    files: { 'eslint.config.js': 'export default [{ rules: { "no-var": "error" } }];\n', 'old.js': 'var a = 1;\n' },
    calls: [['lint-files', { filePaths: ['{place}/old.js'] }], refused('lint-files')],
  },
  {
    name: 'searxng',
    ...{ package: 'mcp-searxng', version: '2.4.0' },
    env: { SEARXNG_URL: 'http://127.0.0.1:9' },
    calls: [refused('searxng_web_search'), refused('web_url_read')],
    note: BOTH,
  },
  {
    name: 'mastra-docs',
    ...{ package: '@mastra/mcp-docs-server', version: '1.2.27' },
    calls: [refused('mastraDocs'), ['mastraMigration', {}], ['mastraDocs', { paths: ['no/such/page'] }]],
    differs: [[/^capability logging/, 'options that MCP does not name, here `logging.enabled`, are left out']],
  },
  {
    name: 'hubspot',
    ...{ package: '@hubspot/mcp-server', version: '0.4.0' },
    env: { PRIVATE_APP_ACCESS_TOKEN: 'made-up' },
    calls: [refused('hubspot-list-objects'), refused('hubspot-get-property')],
  },
];
