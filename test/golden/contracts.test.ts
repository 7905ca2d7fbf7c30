/**
 * What others build on, byte for byte: commands and their options, JSON documents, the schema of
 * the configuration, stored tables and texts, names in Redis and of metrics. A file here changes
 * only together with the contract and a line in the CHANGELOG (`vitest run test/golden -u`).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { commands } from '../../src/commands/table.ts';
import { explain } from '../../src/compose/output/failure-report.ts';
import * as errors from '../../src/domain/errors.ts';
import { queueKinds, queueName } from '../../src/compose/queues/redis-connections.ts';
import { createMetrics } from '../../src/worker/server/metrics.ts';
import { ann, bob, calling, mirrored } from '../support/commands/mirrored-contacts.ts';
import { shapeOfAll } from './shape.ts';

const file = (name: string) => join(import.meta.dirname, 'files', name);

async function said(...argv: string[]): Promise<string> {
  return `${(await calling(argv)).said}\n`;
}

test('the schema of the configuration', async () => {
  const published = join(import.meta.dirname, '../../config/mirror.schema.json');
  await expect(await said('print', 'schema')).toMatchFileSnapshot(published);
});

test.each(['crm-mirror', ...commands.flatMap(({ name, isHidden }) => (isHidden ? [] : [name]))])(
  'the command %s',
  async (name) => {
    const words = name === 'crm-mirror' ? [] : name.split(' ');
    const help = await said(...words, '--help');
    await expect(help).toMatchFileSnapshot(file(`help/${name.replaceAll(' ', '-')}.txt`));
  },
);

test('exit codes', async () => {
  const kinds = {
    Invalid: new errors.Invalid('a'),
    Unavailable: new errors.Unavailable('a', { acted: 'no' }),
    Busy: new errors.Busy('a'),
    SIGTERM: new errors.Interrupted('SIGTERM'),
    SIGINT: new errors.Interrupted('SIGINT'),
    bug: new Error('a'),
  };
  const lines = Object.entries(kinds).map(([name, error]) => `${name} ${explain(error).code}`);
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(file('exit-codes.txt'));
});

test('names of metrics, with their types and labels', async () => {
  const text = await createMetrics([]).text();
  const lines = text.split('\n').filter((line) => line.startsWith('# TYPE crm_mirror_'));
  const own = lines.filter((line) => !/crm_mirror_(process|nodejs)_/.test(line)).toSorted();
  expect(own.length).toBeGreaterThan(10);
  await expect(`${own.join('\n')}\n`).toMatchFileSnapshot(file('metrics.txt'));
});

/** Whatever file they stand in: names that processes of other versions share, or users call. */
test('names in Redis and of jobs', async () => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('emulator'))
    .map((name) => readFileSync(join('src', name), 'utf8'));
  const text = sources.join('\n');
  const literals = [
    ...(text.match(/(['`])crm-mirror:[^'`\s]*\1/g) ?? []),
    ...queueKinds.map((kind) => `\`${queueName(kind, '${mirror}')}\``),
    ...(text.match(/\bprefix = '[^']*'/g) ?? []),
  ];
  const names = [...new Set(literals)];
  expect(names.length).toBeGreaterThan(3);
  await expect(`${names.toSorted().join('\n')}\n`).toMatchFileSnapshot(file('redis.txt'));
});

test('what the package exports', async () => {
  const { exports } = manifest;
  const lines = await Promise.all(
    Object.entries(exports).map(async ([name, entry]) => {
      if (typeof entry === 'string') return [`${name} ${entry}`];
      const source = entry.default.replace('./dist/', '../../src/').replace(/\.js$/, '.ts');
      const text = readFileSync(join(import.meta.dirname, source), 'utf8');
      const types = [...text.matchAll(/^export (?:type|interface) (?:\{([^}]*)\}|(\w+))/gm)];
      const typeNames = types.flatMap(([, list, one]) => one ?? (list ?? '').split(','));
      const values = Object.keys(await import(source));
      return [...values, ...typeNames.map((one) => one.trim()).filter(Boolean)]
        .toSorted()
        .map((one) => `${name} ${one}`);
    }),
  );
  await expect(`${lines.flat().join('\n')}\n`).toMatchFileSnapshot(file('exports.txt'));
});

describe('what is stored', () => {
  /** A mirror that has created, opted in and out, held, rejected and reported. */
  async function used() {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    world.template('welcome', { subject: 'Hi' });
    world.emulator.seed.contact({ email: bob, channels: { ch_product: 'opt_in' } });
    expect((await world.call('sync')).code).toBe(0);
    world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
    world.people([
      { email: bob, news: 'no', product: 'no' },
      { email: 'broken', news: 'yes' },
      { email: 'new@example.com', news: 'perhaps' },
    ]);
    expect((await world.call('sync')).code).toBe(4);
    return world;
  }

  const tablesOf = (path: string): string => {
    const db = new Database(path, { readonly: true });
    const rows = db
      .prepare<[], { sql: string }>(
        'select sql from sqlite_master where sql is not null order by type, name',
      )
      .all();
    const version = db.pragma('user_version', { simple: true });
    db.close();
    return `user_version ${version}\n${rows.map(({ sql }) => sql).join(';\n')}\n`;
  };

  test('tables of the snapshot and of the memory', async () => {
    const { path } = await used();
    await expect(tablesOf(path)).toMatchFileSnapshot(file('snapshot.sql'));
    await expect(tablesOf(`${path}-memory`)).toMatchFileSnapshot(file('memory.sql'));
    const files = readdirSync(join(path, '..')).filter((name) => !/-(wal|shm)$/.test(name));
    await expect(`${files.toSorted().join('\n')}\n`).toMatchFileSnapshot(file('files.txt'));
  });

  test('names of meta, and bodies of records and changes', async () => {
    const { path } = await used();
    const db = new Database(path, { readonly: true });
    const names = db.prepare<[], { name: string }>('select name from meta order by name').all();
    await expect(`${names.map(({ name }) => name).join('\n')}\n`).toMatchFileSnapshot(
      file('meta.txt'),
    );
    for (const table of ['recorded', 'change', 'problem']) {
      const rows = db.prepare<[], Record<string, unknown>>(`select * from ${table}`).all();
      const documents = rows.map((row) => ({
        ...row,
        ...(typeof row['body'] === 'string' && { body: JSON.parse(row['body']) }),
      }));
      expect(documents.length).toBeGreaterThan(0);
      await expect(shapeOfAll(documents)).toMatchFileSnapshot(file(`rows/${table}.txt`));
    }
    db.close();
  });
});
