// The fixture over stdio.

import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { conformanceServer } from './server.mjs';

await conformanceServer().connect(new StdioServerTransport());
