/**
 * Which folder of src may import which, and which folder may import a package, as rules of the
 * linter. docs/architecture.md draws the picture.
 */
import { readdirSync } from 'node:fs';
import { join, posix as path } from 'node:path';

/** One folder for each type of source. */
const sourceFolders = readdirSync(join(import.meta.dirname, '../../src/sources'), {
  withFileTypes: true,
})
  .filter((entry) => entry.isDirectory() && entry.name !== 'shared')
  .map(({ name }) => `sources/${name}`);

/** The folders of src, lowest first: a file imports its own folder and those in earlier lines. */
export const layers: readonly (readonly string[])[] = [
  ['domain/values'],
  ['domain'],
  ['domain/guards'],
  ['http'],
  ['http/rate-limit'],
  ['http/rate-limit/shared'],
  ['sources'],
  ['sources/shared'],
  ['sources/shared/files'],
  ['sources/sql/drivers'],
  sourceFolders,
  ['platform'],
  ['records'],
  ['records/contact/values'],
  ['records/contact/observe'],
  ['records/contact/consent'],
  ['records/contact/send'],
  ['records/contact', 'records/template'],
  ['store/database'],
  ['store/tables'],
  ['store/holds'],
  ['store/staging'],
  ['store'],
  ['store/memory'],
  ['engine/report'],
  ['engine/context'],
  ['engine/account'],
  ['engine/read'],
  ['engine/observe'],
  ['engine/decide'],
  ['engine/judge'],
  ['engine/apply'],
  ['engine/templates'],
  ['engine/erasure/pending'],
  ['engine/write-back'],
  ['engine/finish'],
  ['engine/watch'],
  ['engine'],
  ['engine/erasure'],
  ['config/schema'],
  ['config'],
  ['compose/queues'],
  ['compose/fleet'],
  ['compose/output'],
  ['compose'],
  ['views'],
  ['views/render'],
  ['views/lookup'],
  ['views/run'],
  ['views/audit'],
  ['views/person'],
  ['views/status'],
  ['app/init'],
  ['app/remote'],
  ['app'],
  ['app/check'],
  ['app/run'],
  ['console/access'],
  ['console/view'],
  ['console/pages'],
  ['console'],
  ['worker/server'],
  ['worker/notifications'],
  ['worker'],
  ['emulator/shared'],
  ['emulator/store'],
  ['emulator/limits'],
  ['emulator/api'],
  ['emulator/quirks'],
  ['emulator/docs', 'emulator/faults', 'emulator/seed', 'emulator/ui'],
  ['emulator'],
  ['trials/rehearsal'],
  ['trials/demo'],
  ['commands/completion'],
  ['commands'],
];

/** What a folder and its subfolders import of the others, where that is not all that lies lower. */
const narrower: Readonly<Record<string, readonly string[]>> = {
  config: ['domain', 'sources/*/options.ts'],
  emulator: ['domain', 'platform/request-schemas.ts'],
  engine: ['domain', 'sources', 'platform', 'records', 'store'],
  http: ['domain'],
  platform: ['domain', 'http'],
  records: ['domain', 'platform'],
  sources: ['domain', 'http'],
  store: ['domain'],
};

/** The only folders that import a package. */
const owners: Readonly<Record<string, readonly string[]>> = {
  '@bomb.sh/tab': ['commands/completion'],
  '@bull-board/*': ['worker/server'],
  '@clack/prompts': ['app/init'],
  '@fastify/*': ['worker/server', 'console', 'emulator'],
  '@marcbachmann/cel-js': ['config/schema'],
  'better-sqlite3': ['store', 'emulator/store', 'sources/sql'],
  bullmq: ['compose/queues'],
  'cli-table3': ['views/render'],
  fastify: ['worker/server', 'console', 'emulator'],
  hono: ['console', 'views/render'],
  ioredis: ['compose/queues', 'http/rate-limit/shared'],
  mysql2: ['sources/sql'],
  nodemailer: ['worker/notifications'],
  pg: ['sources/sql'],
  'prom-client': ['worker/server'],
  re2js: ['config/schema'],
  saxes: ['sources/xlsx'],
  standardwebhooks: ['worker/server'],
  undici: ['http'],
  yauzl: ['sources/xlsx'],
};

/** Folders in these know nothing of each other, only of what is shared. */
const apart: readonly string[] = ['records', 'sources'];

const isWithin = (folder: string, outer: string): boolean => `${folder}/`.startsWith(`${outer}/`);

/** What the files of a folder may import, as patterns relative to src. */
function importsOf(folder: string): string[] {
  const line = layers.findIndex((one) => one.includes(folder));
  const [top = ''] = folder.split('/');
  const wanted = narrower[top];
  const lower = layers.slice(0, line).flat();
  const inside = lower.filter((one) => isWithin(one, top) && !isApart(folder, one));
  const outside = lower.filter((one) => !isWithin(one, top));
  const allowed = wanted
    ? outside.filter((one) => wanted.some((of) => isWithin(one, of)))
    : outside;
  const files = (wanted ?? []).filter((one) => one.endsWith('.ts'));
  return [...[...inside, ...allowed].map((one) => `${one}/*.ts`), ...files];
}

function isApart(folder: string, other: string): boolean {
  const [top = '', mine] = folder.split('/');
  const [, theirs] = other.split('/');
  return apart.includes(top) && theirs !== undefined && theirs !== 'shared' && theirs !== mine;
}

function relative(folder: string, target: string): string {
  const name = path.relative(folder, target);
  return name.startsWith('.') ? name : `./${name}`;
}

/** One override of the linter for each folder. */
export const layerRules = layers.flat().map((folder) => {
  const allowed = importsOf(folder).map((target) => `!${relative(folder, target)}`);
  const packages = Object.entries(owners)
    .filter(([, folders]) => !folders.some((owner) => isWithin(folder, owner)))
    .flatMap(([name]) => [name, `${name}/**`]);
  const patterns = [
    {
      group: ['../**', './*/**', ...allowed],
      message: `${folder} lies below that folder: move what both need down, or pass it in`,
    },
    { group: packages, message: 'another folder owns this package: use what it exports' },
  ];
  const rule: ['error', { patterns: typeof patterns }] = ['error', { patterns }];
  return { files: [`src/${folder}/*.ts`], rules: { 'eslint/no-restricted-imports': rule } };
});
