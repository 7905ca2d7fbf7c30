/** Files of contacts, CSV and NDJSON: read to their end, and each record put in canonical form. */
import fc from 'fast-check';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile } from '../../src/config/schema/cel-condition.ts';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { csvSource } from '../../src/sources/csv/csv-source.ts';
import { ndjsonSource } from '../../src/sources/ndjson/ndjson-source.ts';
import type { DesiredRow } from '../../src/domain/record.ts';
import type { Source } from '../../src/sources/source.ts';
import { ADDRESS, area, judgeError, judgeText, mutated, scrap, twisted } from './area.ts';

const NOON = Date.UTC(2026, 10, 20, 12);

/** A file of text, or of any bytes: base64. */
type Input = { text: string } | { base64: string };

/** Nobody waits for a file that changes. */
const clock = { now: () => NOON, monotonic: () => 0, sleep: async () => undefined };
const open = { clock, random: () => 0.5 };

export const csvArea = area('csv', async () => {
  const people = await readFile(join(import.meta.dirname, '../../config/demo/people.csv'), 'utf8');
  const demo = people.split('\n').slice(0, 12).join('\n');
  const own = `id,email,news,gone\n1,${ADDRESS},yes,\n"2","b@x.y","no","2026-01-02"\n3,c@x.y,,x\n`;
  const texts = [demo, own, own.replaceAll(',', ';'), own.replaceAll('\n', '\r\n'), `\ufeff${own}`];
  const cell = fc.oneof(scrap, fc.constantFrom('id', 'email', 'news', 'gone', ADDRESS, 'yes'));
  const row = fc.array(cell, { maxLength: 6 }).map((cells) => cells.join(','));
  const soup = fc.array(row, { maxLength: 8 }).map((rows) => rows.join('\n'));
  return fileArea(fc.oneof(mutated(texts), soup), (path) => csvSource({ type: 'csv', path }, open));
});

export const ndjsonArea = area('ndjson', async () => {
  const record = { id: 1, email: ADDRESS, news: 'yes', gone: null, more: { tags: ['a', 'b'] } };
  const lines = [record, { ...record, id: '2', news: false }, { id: 3, email: 'c@x.y', news: '' }];
  const text = `${lines.map((one) => JSON.stringify(one)).join('\n')}\n`;
  const twists = fc
    .array(twisted(lines), { minLength: 1, maxLength: 4 })
    .map((all) => `${all.map((one) => JSON.stringify(one)).join('\n')}\n`);
  return fileArea(fc.oneof(mutated([text, `\ufeff${text}`]), twists), (path) =>
    ndjsonSource({ type: 'ndjson', path }, open),
  );
});

async function fileArea(texts: fc.Arbitrary<string>, sourceOf: (path: string) => Source) {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-records-'));
  const path = join(folder, 'people');
  const source = sourceOf(path);
  const fields = wanted();
  const desire = contactDesire(fields, () => NOON);
  const bytes = fc
    .uint8Array({ maxLength: 60 })
    .map((all) => ({ base64: Buffer.from(all).toString('base64') }));
  const inputs: fc.Arbitrary<Input> = fc.oneof(
    { weight: 9, arbitrary: texts.map((text) => ({ text })) },
    { weight: 1, arbitrary: bytes },
  );
  return {
    inputs,
    async judge(input: Input) {
      await writeFile(path, 'text' in input ? input.text : Buffer.from(input.base64, 'base64'));
      await readWhole(source, { fields: fieldNames(fields), desire }).catch(judgeError);
    },
    close: async () => rm(folder, { recursive: true, force: true }),
  };
}

interface Reading {
  fields: readonly string[];
  desire: ReturnType<typeof contactDesire>;
}

async function readWhole(source: Source, { fields, desire }: Reading): Promise<void> {
  const reading = source.read({ fields, signal: new AbortController().signal });
  let step = await reading.next();
  while (!step.done) {
    for (const record of step.value) {
      if ('broken' in record) judgeText(`${record.where} ${record.broken} → ${record.fix}`);
      else judgeRow(desire(record.value, record.where));
    }
    step = await reading.next();
  }
  if (!step.value.complete) judgeText(`${step.value.why} → ${step.value.fix}`);
}

function judgeRow({ invalid, body }: DesiredRow): void {
  JSON.parse(body);
  if (invalid) judgeText(`${invalid.reason} → ${invalid.fix}`);
}

function wanted(): ContactFields {
  const include = compile('record.news != "x" && !record.email.startsWith("z")', {
    nullable: false,
  });
  if (!('judge' in include)) throw new Error(include.reason);
  const channels = [{ id: 'ch_news', subscription: 'news' }];
  return { id: 'id', email: 'email', deleted: 'gone', unsubscribed: 'news', include, channels };
}
