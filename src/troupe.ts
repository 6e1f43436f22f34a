#!/usr/bin/env node
// The program as it is installed.

import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadWithCode } from './bundle.ts';

loadWithCode(dirname(fileURLToPath(import.meta.url)));
void import('./main.ts');
