/** The part of the status about opt-outs that the CRM was not told of yet. */
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { stuckIn } from '../../write-back/report-delivery.ts';
import type { Names } from '../lookup/display-names.ts';
import { instant } from '../output/format-values.ts';

/** Opt-outs for the CRM. */
export interface ToldReturns {
  /** Opt-outs that were not told yet, counted by CRM record. */
  waiting: number;
  since: string | null;
  /** Since when the CRM cannot be told anything, and why; null: it can. */
  stuck: { since: string; reason: string } | null;
  /** Opt-outs that the CRM rejected; the next run after a day tries them again. */
  rejected: { count: number; since: string | null; people: ToldRejected[] };
}

interface ToldRejected {
  key: string;
  channel: string;
  reason: string;
  fix: string;
  since: string;
}

const peopleShown = 20;
const kind = 'contact';

/** Returns the opt-outs for the CRM. */
export function returnsOf(snapshot: Snapshot, names: Names): ToldReturns {
  const { optOutReports, meta } = snapshot;
  const { waiting, waitingSince, rejected, rejectedSince } = optOutReports.counts(kind);
  const stuck = stuckIn({ meta });
  const time = (at: number | null): string | null => (at === null ? null : instant(at));
  return {
    waiting,
    since: time(waitingSince),
    stuck: stuck ? { since: instant(stuck.since), reason: stuck.why } : null,
    rejected: {
      count: rejected,
      since: time(rejectedSince),
      people: optOutReports.rejected(kind, peopleShown).map((row) => ({
        key: names({ kind, key: row.email }),
        channel: row.channel,
        reason: row.reason ?? '',
        fix: row.fix ?? '',
        since: instant(row.plannedAt),
      })),
    },
  };
}
