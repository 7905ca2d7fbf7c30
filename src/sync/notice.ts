/**
 * Lists the records of a source that cannot be used, each under a name that stays when lines move.
 */
import type { DesiredRow } from '../model/record.ts';
import type { Kind } from '../kind/kind.ts';
import { onlyKey, type Run } from './mirror.ts';
import type { Tally } from './tally.ts';

const page = 500;

export function noticeInvalid(run: Run, kind: Kind, tally: Tally): void {
  const only = onlyKey(run);
  if (only !== undefined) {
    for (const row of run.snapshot.staging.desired(kind.name, only)) noticeOne(row, kind, tally);
    return;
  }
  let after = 0;
  for (;;) {
    const rows = run.snapshot.staging.invalid(kind.name, after, page);
    run.snapshot.stage(() => {
      for (const row of rows) noticeOne(row, kind, tally);
    });
    if (rows.length < page) return;
    after = rows.at(-1)?.row ?? after;
  }
}

function noticeOne(row: DesiredRow, kind: Kind, tally: Tally): void {
  if (!row.invalid) return;
  const { reason, fix } = row.invalid;
  tally.notice({
    kind: kind.name,
    key: row.key ?? (row.id === '' ? row.place : `id ${row.id}`),
    class: 'invalid',
    part: '',
    reason: `${row.place}: ${reason}`,
    fix,
  });
}
