// The four things a server offers, and how MCP asks for each.

export const KINDS = {
  tools: { method: 'tools/list', member: 'tools', key: 'name' },
  resources: { method: 'resources/list', member: 'resources', key: 'uri' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates', key: 'uriTemplate' },
  prompts: { method: 'prompts/list', member: 'prompts', key: 'name' },
} as const;

export type Kind = keyof typeof KINDS;
export const ALL_KINDS = Object.keys(KINDS) as Kind[];
export const isKind = (text: string): text is Kind => Object.hasOwn(KINDS, text);
