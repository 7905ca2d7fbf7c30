import type { ObservedRow, RecordedRow } from '../../model/record.ts';
import { seen } from './decide.ts';
import { observedBody, recordedBody, type RecordedContact } from './record.ts';
import { strictestOf } from './strictest.ts';

/** What is known of somebody under a former address: what was recorded, and what is shown since. */
export function pastOf(
  row: RecordedRow,
  rows: readonly ObservedRow[],
  all: readonly string[],
): RecordedContact {
  const recorded = recordedBody.parse(JSON.parse(row.body));
  const shown = rows.map((one) => observedBody.parse(JSON.parse(one.body)));
  const channels = { ...recorded.channels };
  for (const channel of all) {
    const sight = { present: shown.length > 0, before: row.seenAt, by: row.seenAt, changed: false };
    const is = seen(channels[channel], strictestOf(shown, channel), sight);
    if (is) channels[channel] = is;
  }
  return { ...recorded, contacts: [...recorded.contacts, ...shown], channels };
}
