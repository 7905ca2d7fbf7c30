import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import type { Clock } from '../../../src/domain/clock.ts';
import { csvSource } from '../../../src/sources/csv/csv-source.ts';
import type { CsvOptions } from '../../../src/sources/csv/options.ts';
import type {
  Certificate,
  Source,
  SourceRecord,
  ReportResult,
  WriteBack,
} from '../../../src/sources/source.ts';
import { contactDesire } from '../../../src/records/contact/observe/desired-contact.ts';
import type { OptOutReport } from '../../../src/domain/opt-out-report.ts';

// Reads a source to its end, and the virtual time and real files that such a reading needs.

export interface Reading {
  batches: SourceRecord[][];
  records: SourceRecord[];
  values: Record<string, unknown>[];
  broken: { where: string; broken: string; fix: string }[];
  certificate: Certificate;
}

export async function readAll(
  source: Source,
  fields: readonly string[] = [],
  signal = new AbortController().signal,
): Promise<Reading> {
  return allOf(source.read({ fields, signal }));
}

/** What a reading gives, to its end. */
export async function allOf<T>(
  reading: AsyncGenerator<SourceRecord[], T>,
): Promise<Omit<Reading, 'certificate'> & { certificate: T }> {
  const batches: SourceRecord[][] = [];
  let step = await reading.next();
  while (!step.done) {
    batches.push(step.value);
    step = await reading.next();
  }
  const records = batches.flat();
  return {
    batches,
    records,
    values: records.flatMap((record) => ('value' in record ? [record.value] : [])),
    broken: records.flatMap((record) => ('broken' in record ? [record] : [])),
    certificate: step.value,
  };
}

/** One line each: what, where and how to mend it. */
export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('nothing was thrown');
  expect(error.message).not.toContain('\n');
  return error;
}

/** When every file of a test was last written, unless it says otherwise. */
export const WRITTEN = Date.UTC(2026, 0, 15, 12);

/** Virtual time: a sleep is over at once, and `onSleep` is what happens meanwhile. */
export function virtualClock(
  startMs = WRITTEN + 3_600_000,
  onSleep: () => Promise<void> | void = () => {},
): Clock & { slept: number[] } {
  let now = startMs;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    monotonic: () => now - startMs,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      slept.push(ms);
      now += ms;
      await onSleep();
      signal?.throwIfAborted();
    },
  };
}

/** A folder that is gone after the tests of the file. */
export async function scratch(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'source-'));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function write(path: string, content: string | Buffer, mtimeMs = WRITTEN) {
  await writeFile(path, content);
  await utimes(path, mtimeMs / 1000, mtimeMs / 1000);
}

/** Reads `content` as a CSV file at `path`. */
export async function readCsv(
  path: string,
  content: string | Buffer,
  fields: readonly string[],
  options: Partial<CsvOptions> = {},
) {
  await write(path, content);
  return readAll(
    csvSource({ ...options, type: 'csv', path }, { clock: virtualClock(), random: () => 1 }),
    fields,
  );
}

// Whether contacts.deleted takes a value for "yes".

const desire = contactDesire({ id: 'id', email: 'email', deleted: 'gone', channels: [] }, Date.now);

export function truthyIn(gone: unknown): boolean {
  return desire({ id: '1', email: 'ann@example.com', gone }, 'row 1').presence === 'flagged';
}

// Opt-outs to tell, and what a way back makes of them.

/** `ret_a` of a@x.y, whose id in the CRM is `a`: out of a channel, unless it says otherwise. */
export function left(id: string, more: Partial<OptOutReport> = {}): OptOutReport {
  const by = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const email = `${id}@x.y`;
  const standard = { crmId: id, channel: 'ch_news', cause: 'opt_out' as const, after: null, by };
  return { id: `ret_${id}`, email, ...standard, ...more };
}

export const allMail = { channel: '*', cause: 'unsubscribed' } as const;

export async function tell(returns: WriteBack, ...batch: OptOutReport[]): Promise<ReportResult[]> {
  const told: ReportResult[] = [];
  for await (const one of returns.tell(batch, new AbortController().signal)) told.push(one);
  return told;
}
