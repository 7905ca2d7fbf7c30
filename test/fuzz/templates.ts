/** Templates: files of a folder, and what a platform lists; then what is to be done about them. */
import fc from 'fast-check';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createGate } from '../../src/http/rate-limit/request-gate.ts';
import { connectTemplates } from '../../src/records/template/connect-templates.ts';
import type { Answer } from '../../src/domain/exchange.ts';
import {
  desireTemplate,
  type DesiredTemplateRow,
  type ObservedTemplateRow,
} from '../../src/records/template/template-state.ts';
import { createPlatform } from '../../src/platform/api-client.ts';
import { directorySource } from '../../src/sources/directory/directory-source.ts';
import { virtualClock } from '../support/waiting.ts';
import { area, judgeError, judgeLines, mutated, scrap, twisted } from './area.ts';

const signal = new AbortController().signal;
const names = ['welcome.json', 'welcome.yaml', 'b.yml', 'c/template.yaml', 'c/content.json'];
const strangeNames = ['.json', 'a\u001b[2J.json', '__proto__.yaml', '{{x}}.json', 'notes.txt'];

const listed = {
  object: 'list',
  templates: [
    {
      id: 'tpl_1',
      name: 'Welcome to the newsletter',
      subject: 'Hi {{name}}',
      content: [{ type: 'text', text: 'Hi {{name}}' }],
      variables: [{ name: 'name', type: 'string', defaultValue: null }],
      status: 'draft',
      createdAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
    },
    { id: 'tpl_2', name: 'b', content: null, variables: null, deletedAt: null },
  ],
  total: 2,
};

export const templateArea = area('templates', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-templates-'));
  const demo = join(import.meta.dirname, '../../config/demo/templates');
  const files = ['welcome.json', 'invoice.yaml', 'newsletter/template.yaml'];
  const texts = await Promise.all(files.map((name) => readFile(join(demo, name), 'utf8')));
  const welcome: unknown = JSON.parse(texts[0] ?? '');
  const text = fc.oneof(
    mutated(texts),
    twisted([welcome, ...listed.templates]).map((value) => JSON.stringify(value) ?? ''),
    scrap,
  );
  const file = fc.record({
    name: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...names) },
      { weight: 1, arbitrary: fc.constantFrom(...strangeNames) },
    ),
    text,
  });
  let turn = 0;
  return {
    inputs: fc.record({
      files: fc.array(file, { maxLength: 4 }),
      platform: fc.oneof(
        twisted([listed]).map((value) => JSON.stringify(value) ?? ''),
        mutated([JSON.stringify(listed)]),
      ),
    }),
    async judge({ files, platform }) {
      turn += 1;
      const own = join(folder, String(turn));
      await mkdir(own);
      for (const { name, text } of files) {
        await mkdir(dirname(join(own, name)), { recursive: true });
        await writeFile(join(own, name), text);
      }
      const clock = virtualClock();
      const kind = kindOn({ status: 200, headers: {}, body: platform }, clock);
      try {
        const desired = await readAll(own);
        const rows = await clock.run(listedBy(kind));
        for (const row of desired) decide(kind, row, rows);
      } catch (error) {
        judgeError(error);
      } finally {
        await rm(own, { recursive: true, force: true });
      }
    },
    close: async () => rm(folder, { recursive: true, force: true }),
  };
});

type Kind = ReturnType<typeof connectTemplates>;

function kindOn(answer: Answer, clock: ReturnType<typeof virtualClock>): Kind {
  const random = () => 0.5;
  const gate = createGate({ clock, random });
  const platform = createPlatform({ send: async () => answer, gate, clock, random, apiKey: 'k' });
  const policy = { templates: 'overwrite', absentTemplates: 'archive' } as const;
  return connectTemplates({ policy, platform: platform.templates });
}

async function listedBy(kind: Kind): Promise<ObservedTemplateRow[]> {
  try {
    return [...(await kind.list({ page: 1, limit: 100 }, signal)).rows];
  } catch (error) {
    judgeError(error);
    return [];
  }
}

async function readAll(path: string): Promise<DesiredTemplateRow[]> {
  const reading = directorySource({ type: 'directory', path }).read({ fields: [], signal });
  const rows: DesiredTemplateRow[] = [];
  let step = await reading.next();
  while (!step.done) {
    for (const record of step.value) {
      if ('broken' in record) judgeLines(`${record.where} ${record.broken} → ${record.fix}`);
      else rows.push(desireTemplate(record.value, record.where));
    }
    step = await reading.next();
  }
  if (!step.value.complete) judgeLines(`${step.value.why} → ${step.value.fix}`);
  return rows;
}

const unknown = {
  recorded: undefined,
  former: undefined,
  sight: 'listed',
  certified: true,
  at: 0,
} as const;

/** What is wanted and shown is compared in both ways in which a template can be known. */
function decide(
  kind: Kind,
  desired: DesiredTemplateRow,
  rows: readonly ObservedTemplateRow[],
): void {
  const { invalid } = desired;
  if (invalid) judgeLines(`${invalid.reason} → ${invalid.fix}`);
  const key = desired.key ?? '';
  for (const observed of [[], ...rows.map((row) => [row]), rows]) {
    const { problems } = kind.decide({ ...unknown, key, desired: [desired], observed });
    for (const { reason, fix } of problems) judgeLines(`${reason} → ${fix}`);
  }
}
