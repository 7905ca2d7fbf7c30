/** Shows an error that is no bug instead of what could not be read. */
import { explain, isBug } from '../../compose/output/failure-report.ts';

/** Returns what `read` returns, or the error that it throws. A bug is thrown again. */
export function orFault<Value>(read: () => Value): Value | { fault: string } {
  try {
    return read();
  } catch (error) {
    if (isBug(error)) throw error;
    return { fault: explain(error).text };
  }
}
