import type { OptOutReport } from '../../../src/domain/opt-out-report.ts';
import type { WriteBack, ReportResult } from '../../../src/sources/write-back.ts';

export const told: ReportResult = { is: 'told' };

/** A CRM that keeps what it is told, and can be made to fail. */
export function hearing(over: Partial<WriteBack> = {}) {
  const heard: OptOutReport[] = [];
  const returns: WriteBack = {
    most: 10,
    takes: () => true,
    async *tell(batch) {
      for (const one of batch) {
        heard.push(one);
        yield told;
      }
    },
    look: () => 'kept',
    ...over,
  };
  return { heard, returns };
}
