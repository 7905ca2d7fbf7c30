/** Writes every generated part of the pages anew: `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { overview } from '../../../src/cli.ts';
import { readPages } from './page-blocks.ts';
import {
  commandParts,
  completionFile,
  completionTable,
  configurationParts,
  consentParts,
  exitCodeParts,
  withParts,
  type Parts,
} from './generated-parts.ts';

/** Returns every part that a page may have. */
export async function allParts(): Promise<Parts> {
  return { ...consentParts, ...configurationParts(), ...(await commandParts()), ...exitCodeParts };
}

/** What `crm-mirror --help` prints without loading anything (bin/crm-mirror.mjs). */
export const helpFile = new URL('../../../bin/help.txt', import.meta.url);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const parts = await allParts();
  for (const page of readPages()) {
    const text = await withParts(page, parts);
    const file = new URL(`../../../${page.path}`, import.meta.url);
    if (text !== page.text) writeFileSync(file, text);
  }
  writeFileSync(completionFile, await completionTable());
  writeFileSync(helpFile, overview());
}
