import type { Return } from '../../../src/domain/opt-out-report.ts';
import type { Returns, Told } from '../../../src/sources/write-back.ts';

export const told: Told = { is: 'told' };

/** A CRM that keeps what it is told, and can be made to fail. */
export function hearing(over: Partial<Returns> = {}) {
  const heard: Return[] = [];
  const returns: Returns = {
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
