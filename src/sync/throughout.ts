import type { Span } from '../snapshot/spans.ts';
import type { Run } from './mirror.ts';

/** Does a part of the work, which must be short, for each span; others have their turn between. */
export async function throughout(
  { clock }: Pick<Run, 'clock'>,
  spans: Iterable<Span>,
  work: (span: Span) => void,
): Promise<void> {
  for (const span of spans) {
    work(span);
    await clock.sleep(0);
  }
}
