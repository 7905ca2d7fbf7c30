/** The commands in the pages do what the pages promise: `sh test` blocks are run. */
import { describe, expect, test } from 'vitest';
import { playsAll, playsDraw, sampled } from '../support/extent.ts';
import { codeBlocksOf, readPages, isTested, runShell } from '../support/docs/page-blocks.ts';

describe('the sh test blocks', () => {
  const all = readPages()
    .map((page) => [page.path, codeBlocksOf(page).filter(isTested)] as const)
    .filter(([, blocks]) => blocks.length > 0);

  test('are found', () => {
    expect(all.length).toBeGreaterThan(0);
  });

  // What needs a worker takes long.
  const short = all.filter(([, blocks]) => blocks.every(({ text }) => !text.includes('REDIS_URL')));

  test.each(playsDraw ? all : sampled(short, 10))('of %s succeed', async (_path, blocks) => {
    expect(await runShell(blocks)).toEqual([]);
  });
});

const mirror = [
  "cat > people.csv <<'END'",
  'id,email,news',
  '1,ann@example.com,yes',
  'END',
  "cat > mirror.yaml <<'END'",
  'mirror: acme',
  'snapshot: acme.sqlite',
  'platform: { url: "${PLATFORM_URL}", apiKey: "${PLATFORM_API_KEY}" }',
  'contacts:',
  '  source: { type: csv, path: people.csv }',
  '  id: id',
  '  email: email',
  '  channels: [{ id: ch_news, subscription: news }]',
  'END',
];

/** A page with a block for each text. */
function page(...blocks: [info: string, ...lines: string[]][]) {
  const text = blocks.map(([info, ...lines]) => [`\`\`\`${info}`, ...lines, '```'].join('\n'));
  return codeBlocksOf({ path: 'docs/page.md', text: text.join('\n\n') }).filter(isTested);
}

describe.runIf(playsDraw || playsAll)('a page', () => {
  test('is read by one shell, which knows the command and the platform', async () => {
    const steps = page(
      ['sh test', ...mirror, 'file=mirror.yaml'],
      ['sh', 'exit 1'],
      ['sh test exits=5', 'crm-mirror plan --exit-code -c "$file"'],
      ['sh test', 'npx crm-mirror sync -c "$file"', 'crm-mirror plan --exit-code -c "$file"'],
    );
    expect(await runShell(steps)).toEqual([]);
  });

  test.each([
    ['a command that fails', 5, page(['sh test', 'true'], ['sh test', 'cat no-such-file', 'true'])],
    ['another exit code', 1, page(['sh test exits=3', 'exit 4'])],
    ['success where a failure is stated', 1, page(['sh test exits=3', 'true'])],
    ['a failure before the last command', 1, page(['sh test exits=3', 'false', 'exit 3'])],
    ['a failure within a pipe', 1, page(['sh test', 'false | cat'])],
  ])('is reported for %s', async (_title, line, blocks) => {
    const [found, ...more] = await runShell(blocks);
    expect(found).toMatch(new RegExp(`^docs/page\\.md:${line}  ended with 1\n`));
    expect(more).toEqual([]);
  });

  test('leaves no process behind', async () => {
    const [found] = await runShell(page(['sh test', 'sleep 600 & echo $!; exit 1']));
    const pid = Number(/\n {2}(\d+)$/.exec(found ?? '')?.[1]);
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => isRunning(pid)).toBe(false);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
