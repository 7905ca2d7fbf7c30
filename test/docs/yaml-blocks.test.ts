/** Every configuration in the pages is one that the program accepts. */
import { afterAll, describe, expect, test } from 'vitest';
import { makeFolder } from '../support/config/config-folder.ts';
import { codeBlocksOf, placeOf, readPages, mistakesOfYaml } from '../support/docs/page-blocks.ts';

const { folder, remove } = makeFolder();
afterAll(remove);

const mistakes = (path: string, text: string) =>
  codeBlocksOf({ path, text })
    .filter(({ language }) => language === 'yaml')
    .flatMap((block) => mistakesOfYaml(block, folder));
const page = (info: string, ...lines: string[]) =>
  [`\`\`\`${info}`, ...lines, '```', ''].join('\n');

describe('the yaml blocks of the pages', () => {
  const blocks = readPages()
    .flatMap(codeBlocksOf)
    .filter(({ language }) => language === 'yaml');

  test.each(blocks.map((block) => [placeOf(block), block] as const))(
    '%s is valid',
    (_at, block) => {
      expect(mistakesOfYaml(block, folder)).toEqual([]);
    },
  );
});

describe('a yaml block', () => {
  test.each([
    ['a whole file', 'yaml', 'mirror: acme', 'snapshot: acme.sqlite'],
    ['an unknown key', 'yaml', 'guards: { deletions: { percent: 5 } }'],
    ['a value that is not allowed', 'yaml', 'policy: { deletes: sometimes }'],
    ['an unknown condition', 'yaml', 'contacts: { include: "recrod.a == 1" }'],
    ['an option of another source', 'yaml', 'contacts: { source: { type: csv, url: a } }'],
    ['text that is no YAML', 'yaml', 'guards: { deletes: '],
    ['a list', 'yaml', '- guards'],
    ['a broken manifest', 'yaml kubernetes', 'kind: { Deployment'],
  ])('that is wrong is reported: %s', (_title, info, ...lines) => {
    expect(mistakes('docs/page.md', `# Page\n\n${page(info, ...lines)}`)).not.toEqual([]);
    expect(mistakes('docs/page.md', page(info, ...lines))[0]).toMatch(/^docs\/page\.md:1 {2}\S/);
  });

  test.each([
    ['a fragment', 'guards: { deletes: { percent: 5 } }'],
    ['a part of contacts', 'contacts: { protect: [ceo@example.com] }'],
    ['what only some sources can do', 'contacts: { webhook: { format: hubspot, secret: s } }'],
    [
      'a write-back to the source',
      'contacts: { returns: { type: sql, statement: "select :id, :channel" } }',
    ],
    ['variables', 'redis: "${REDIS_URL}"', 'server: { host: 0.0.0.0, token: ${OPS_TOKEN} }'],
    ['a variable with a default', 'server: { port: ${PORT:-8080}, token: ${OPS_TOKEN:-} }'],
    ['a file with the key', 'platform: { apiKeyFile: /run/secrets/key }'],
  ])('that is right is accepted: %s', (_title, ...lines) => {
    expect(mistakes('docs/page.md', page('yaml', ...lines))).toEqual([]);
  });

  test('of another program has to be YAML, and nothing more', () => {
    expect(mistakes('docs/page.md', page('yaml kubernetes', 'kind: Deployment'))).toEqual([]);
  });
});
