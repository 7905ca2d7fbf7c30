/** Shows an expected error instead of what could not be read. */
import { isExpected } from '../../domain/errors.ts';
import { explain } from '../../cli/output/failure-report.ts';

/** Returns what `read` returns, or the expected error that it throws. Any other error is a bug. */
export function orFault<Value>(read: () => Value): Value | { fault: string } {
  try {
    return read();
  } catch (error) {
    if (isExpected(error)) return { fault: explain(error).text };
    throw error;
  }
}
