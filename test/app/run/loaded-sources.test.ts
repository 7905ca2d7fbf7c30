/** Which sources a run loads. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** The types whose source is loaded for these contacts. */
async function typesFor(contacts: object): Promise<string[]> {
  const script = `
    import { registerHooks } from 'node:module';
    const types = [];
    registerHooks({
      load(url, context, next) {
        const found = /([a-z]+)-source[.]ts$/.exec(url);
        if (found) types.push(found[1]);
        return next(url, context);
      },
    });
    const { loadSources } = await import('./src/compose/source-registry.ts');
    const { contacts } = await loadSources({ contacts: ${JSON.stringify(contacts)} });
    if (typeof contacts().read !== 'function') throw new Error('this is no source');
    console.log(JSON.stringify(types.filter((type) => type !== 'mapped')));
  `;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  return JSON.parse(stdout);
}

test.each([
  ['csv', { path: 'people.csv' }],
  ['xlsx', { path: 'people.xlsx' }],
])('a source of type %s is loaded without those of other types', async (type, options) => {
  expect(await typesFor({ id: 'id', source: { type, ...options } })).toEqual([type]);
});
