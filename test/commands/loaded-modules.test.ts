/** What a command loads before it works: most of the time of a short command is loading. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const program = join(import.meta.dirname, '../../bin/crm-mirror.mjs');
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-loaded-'));
afterAll(() => rmSync(folder, { recursive: true }));
const config = join(folder, 'mirror.yaml');
writeFileSync(
  config,
  [
    'mirror: acme',
    'snapshot: ./acme.sqlite',
    'platform: { url: "http://127.0.0.1:9", apiKey: k }',
    'contacts:',
    '  source: { type: csv, path: ./none.csv }',
    '  id: id',
    '  email: email',
    '  channels: [{ id: ch_news, name: News, subscription: news }]',
  ].join('\n'),
);

const hook =
  'import { registerHooks } from "node:module";' +
  'registerHooks({ load(url, context, next) { console.error(url); return next(url, context); } });';

test.each([
  [
    'complete -- sync --fu',
    /completion\/print/,
    /src\/engine|better-sqlite3|undici|bullmq|fastify/,
  ],
  [`status -c ${config}`, /status-document/, /undici|bullmq|ioredis|fastify|pino/],
  [`runs -c ${config}`, /commands\/runs/, /undici|bullmq|ioredis|fastify|pino/],
  [`sync --fast -c ${config}`, /engine\/run/, /bullmq|ioredis|fastify/],
])('crm-mirror %s loads no package that it does not need', (line, needed, others) => {
  const hooked = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
  const { stderr } = spawnSync(process.execPath, [...hooked, program, ...line.split(' ')]);
  expect(String(stderr)).toMatch(needed);
  expect(String(stderr)).not.toMatch(others);
});
