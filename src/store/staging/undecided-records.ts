/** Keeps records until a whole reading has shown what their columns hold. */
import { z } from 'zod';
import { problemCauses } from '../../domain/problem-causes.ts';
import type { DesiredRow, RecordTypeName } from '../../domain/record.ts';
import type { Statements } from '../database/prepared-statements.ts';

export interface Undecided {
  /** Keeps records whose meaning depends on the other values of their columns. */
  keepUndecided(rows: readonly DesiredRow[]): void;
  /** Removes up to `count` of these records, in the order of the reading, and returns them. */
  takeUndecided(kind: RecordTypeName, count: number): DesiredRow[];
}

const text = z.string();
const fault = z
  .object({
    reason: text,
    fix: text,
    cause: z.enum(Object.values(problemCauses).flat()).optional(),
    about: text.optional(),
    option: text.optional(),
    value: text.optional(),
    noAddress: z.boolean().optional(),
    mayOptOut: z.literal(true).optional(),
  })
  .transform(({ cause, ...rest }) => ({ ...rest, ...(cause && { cause }) }));
const unknown = z.object({
  option: text,
  fix: text,
  unknown: z.enum(['word', 'future', 'no single value']),
  text: text.optional().transform((given) => given),
});
const row = z.object({
  kind: z.enum(['contact', 'template']),
  id: text,
  key: text.optional().transform((given) => given),
  alias: text,
  place: text,
  body: text,
  fingerprint: text,
  wants: z.boolean(),
  presence: z.enum(['present', 'flagged', 'outside']),
  invalid: fault.optional().transform((given) => given),
  unknown: z.array(unknown).optional(),
});
const undecided = row.extend({
  asDates: z.object({ columns: z.array(text), row }).optional(),
});

/** Prepares the statements about undecided records. */
export function undecidedIn(db: Statements): Undecided {
  const keep = db.prepare<[string, string]>('insert into temp.undecided (kind, row) values (?, ?)');
  const first = db.prepare<[string, number], { seq: number; row: string }>(
    'select seq, row from temp.undecided where kind = ? order by seq limit ?',
  );
  const drop = db.prepare<[number]>('delete from temp.undecided where seq = ?');
  return {
    keepUndecided: (rows) => rows.forEach((one) => keep.run(one.kind, JSON.stringify(one))),
    takeUndecided: (kind, count) =>
      first.all(kind, count).map(({ seq, row: kept }) => {
        drop.run(seq);
        return undecided.parse(JSON.parse(kept));
      }),
  };
}
