/** Reads a source wholly into staging, in canonical form. */
import { Interrupted, Unavailable } from '../model/errors.ts';
import type { DesiredRow } from '../model/record.ts';
import type { Certificate, SourceRecord } from '../source/source.ts';
import type { Kind } from '../kind/kind.ts';
import type { MirrorPart, Run } from './mirror.ts';

/** So many that each page of the indexes is written once for several of them, and no more. */
const stagedAtOnce = 2_000;

const sharedId = {
  reason: 'several records with different addresses have this id',
  fix: 'give every record an id of its own in the CRM',
};

/** An empty reading where there were records before is a failure, not data. */
export async function read(run: Run, { kind, source }: MirrorPart): Promise<Certificate> {
  const { staging, recorded } = run.snapshot;
  const records = source.read({ fields: kind.fields, signal: run.stop });
  let step = await records.next();
  let count = 0;
  let rows: DesiredRow[] = [];
  const stage = (): void => {
    const staged = rows;
    rows = [];
    run.snapshot.stage(() => staged.forEach(staging.addDesired));
  };
  while (!step.done) {
    for (const record of step.value) rows.push(desiredOf(kind, record));
    count += step.value.length;
    if (rows.length >= stagedAtOnce) stage();
    run.progress({ stage: 'reading', kind: kind.name, done: count, of: undefined });
    if (run.stop.aborted) throw reasonOf(run.stop);
    step = await records.next();
  }
  stage();
  const known = recorded.count(kind.name);
  if (count === 0 && known > 0) {
    throw new Unavailable(
      `the source of ${kind.name}s is empty, but ${known} are recorded: ` +
        'taken for a failed export, nothing was changed → export it again',
      { acted: 'no' },
    );
  }
  staging.invalidateSharedIds(kind.name, sharedId);
  run.snapshot.stage(() => staging.nameByOrigin(kind.name));
  return step.value;
}

function desiredOf(kind: Kind, record: SourceRecord): DesiredRow {
  if ('value' in record) return kind.desire(record.value, record.where);
  return {
    kind: kind.name,
    id: '',
    key: undefined,
    alias: '',
    place: record.where,
    body: '{}',
    fingerprint: '',
    wants: false,
    presence: 'present',
    invalid: { reason: record.broken, fix: record.fix },
  };
}

export function reasonOf(stop: AbortSignal): Error {
  return stop.reason instanceof Error ? stop.reason : new Interrupted('SIGTERM');
}
