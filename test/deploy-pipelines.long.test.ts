/** The pipelines shipped for GitHub Actions and GitLab CI, played with the real command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { codeBlocksOf, runShell } from './support/docs/page-blocks.ts';

const read = (name: string): unknown =>
  parse(readFileSync(join(import.meta.dirname, '../config/deploy', name), 'utf8'));

const github = z
  .object({
    on: z.object({
      pull_request: z.object({}),
      push: z.object({ branches: z.tuple([z.literal('main')]) }),
    }),
    permissions: z.object({ contents: z.literal('read') }),
    jobs: z.record(
      z.string(),
      z.object({
        if: z.string(),
        needs: z.string().optional(),
        environment: z.string().optional(),
        steps: z.array(z.object({ run: z.string().optional() })),
      }),
    ),
  })
  .parse(read('github-actions.yaml'));
const job = z.object({
  environment: z.string().optional(),
  needs: z.array(z.string()).optional(),
  rules: z.array(z.object({ if: z.string(), when: z.string().optional() })),
  script: z.array(z.string()),
});
const gitlab = z.object({ plan: job, apply: job }).parse(read('gitlab-ci.yaml'));

/** The scripts of a job of GitHub, without the comment, which needs GitHub. */
function scriptsOf(name: string): string[] {
  const steps = github.jobs[name]?.steps ?? [];
  return steps.flatMap(({ run }) => (run === undefined || run.startsWith('gh ') ? [] : [run]));
}

const people = (rows: string): string =>
  ['cat > people.csv <<EOF', 'id,email,news', rows, 'EOF'].join('\n');
const before = [
  people('1,ann@pipeline.example,yes'),
  "cat > mirror.yaml <<'EOF'",
  'mirror: pipeline',
  'snapshot: ./pipeline.sqlite',
  "platform: { url: '${PLATFORM_URL}', apiKey: '${PLATFORM_API_KEY}' }",
  'guards: { optIns: { percent: 0, floor: 1 } }',
  'contacts:',
  '  source: { type: csv, path: ./people.csv }',
  '  id: id',
  '  email: email',
  '  channels: [{ id: ch_news, subscription: news }]',
  'EOF',
  'crm-mirror sync',
  people('1,ann@pipeline.example,yes\n2,ben@pipeline.example,yes\n3,cleo@pipeline.example,yes'),
].map((line) => line.replace('crm-mirror sync', 'crm-mirror sync -c mirror.yaml'));
const after = [
  '[ "$(crm-mirror plan -c mirror.yaml --json | grep -c awaiting)" = 0 ]',
  'crm-mirror explain ben@pipeline.example -c mirror.yaml | grep "approved by Anna (https://ci.example/7)"',
];

/** Plays the scripts, each as a reader's block. */
async function play(...scripts: string[][]): Promise<string[]> {
  const text = scripts.map((lines) => ['```sh test', ...lines, '```'].join('\n')).join('\n\n');
  // The fences that a script prints would end the block.
  const blocks = codeBlocksOf({
    path: 'pipeline',
    text: text.replaceAll("echo '```'", 'echo fence'),
  });
  return runShell(blocks);
}

describe('the pipeline for GitHub Actions', () => {
  test('plans without an address, applies after the merge, and approves what was planned', async () => {
    const shown = ['! grep @ plan.md', 'grep "await approval" plan.md', 'test -s summary'];
    const own = ['GITHUB_STEP_SUMMARY=summary', 'GITHUB_ACTOR=Anna', 'RUN=https://ci.example/7'];
    expect(await play(before, own, scriptsOf('plan'), shown, scriptsOf('apply'), after)).toEqual(
      [],
    );
  });

  test('runs nothing of a fork, and applies only in a protected environment', () => {
    expect(github.jobs['plan']?.if).toContain(
      'github.event.pull_request.head.repo.full_name == github.repository',
    );
    expect(github.jobs['apply']).toMatchObject({
      if: "github.event_name == 'push'",
      needs: 'plan',
      environment: 'crm-mirror',
    });
  });
});

describe('the pipeline for GitLab CI', () => {
  test('plans without an address, applies after the merge, and approves what was planned', async () => {
    const own = [
      'CI_MERGE_REQUEST_IID=1 NOTES_TOKEN=token CI_API_V4_URL=https://gitlab.example CI_PROJECT_ID=2',
      'GITLAB_USER_LOGIN=Anna CI_JOB_URL=https://ci.example/7',
      'curl() { echo "$*" > curl.txt; }',
    ];
    const shown = [
      '! grep @ plan.md',
      'grep "await approval" plan.md',
      'grep "body@plan.md https://gitlab.example/projects/2/merge_requests/1/notes" curl.txt',
    ];
    expect(await play(before, own, gitlab.plan.script, shown, gitlab.apply.script, after)).toEqual(
      [],
    );
  });

  test('applies only if somebody starts the job of the protected environment', () => {
    expect(gitlab.apply).toMatchObject({
      environment: 'crm-mirror',
      needs: ['plan'],
      rules: [{ if: '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH', when: 'manual' }],
    });
  });
});
