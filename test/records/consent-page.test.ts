import { expect, test } from 'vitest';
import { readPage, withTables } from '../support/docs/consent-tables.ts';

test('docs/consent.md lists the rules and gates as they are: `npm run docs` writes them', async () => {
  expect(readPage()).toBe(await withTables(readPage()));
});
