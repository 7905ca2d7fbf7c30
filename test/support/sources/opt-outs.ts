/** Opt-outs to tell, and what a way back makes of them. */
import type { OptOutReport } from '../../../src/domain/opt-out-report.ts';
import type { WriteBack, ReportResult } from '../../../src/sources/write-back.ts';

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
