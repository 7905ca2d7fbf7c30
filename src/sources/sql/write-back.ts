/**
 * Reports opt-outs to a database: one statement per report, with its values bound and never written
 * into the statement. A batch is one transaction. If the database refuses one report, that report
 * is rolled back and the rest is reported. A statement with an unknown outcome is repeated.
 */
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import type { ReportResult, WriteBack } from '../write-back.ts';
import { placeOf } from './drivers/database-address.ts';
import { isNoValue, isRefused } from './drivers/database-failure.ts';
import { namedIn } from './options.ts';
import { openToWrite, type Reach } from './open-session.ts';
import type { Writing } from './drivers/database-session.ts';

const AT_ONCE = 100;

/** Returns a write-back that runs a statement with named parameters in the database of `reach`. */
export function sqlReturns(
  statement: string,
  reach: Reach,
  { clock }: { clock: Clock },
): WriteBack {
  const pieces = namedIn(statement);
  const needsId = pieces.some((piece) => typeof piece === 'object' && piece.name === 'id');
  return {
    most: AT_ONCE,
    reportsTogether: true,
    takes: ({ crmId }) => !needsId || crmId !== '',
    async *tell(batch, signal) {
      const results: ReportResult[] = [];
      try {
        const writing = await openToWrite(reach, { signal, clock });
        try {
          for (const one of batch) results.push(await report(writing, pieces, one));
          await writing.command('commit');
        } finally {
          await writing.close();
        }
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        const [{ code, reason }] = error.problems;
        if (code === 'database-access') throw error;
        // The fix points to the statement instead of the source.
        const fix = 'correct statement of returns, or the rights of its user';
        throw new Invalid(reason.replace('permit to read this', 'permit this'), { fix });
      }
      yield* results;
    },
    look() {
      const place = placeOf(reach.url);
      if ('reason' in place) {
        throw new Invalid(`url of returns ${place.reason}`, { fix: place.fix });
      }
      const isFile = place.system === 'sqlite';
      return `reported to ${isFile ? place.path : `${place.host}/${place.database}`}, by a statement`;
    },
  };
}

async function report(
  writing: Writing,
  pieces: ReturnType<typeof namedIn>,
  { id, email, crmId, channel, cause, by }: OptOutReport,
): Promise<ReportResult> {
  const at = writing.time(by);
  const values = { return: id, id: crmId, email, channel, cause, at };
  const bound: string[] = [];
  const text = pieces.map((piece) => {
    if (typeof piece === 'string') return piece;
    bound.push(values[piece.name]);
    return writing.place(bound.length);
  });
  await writing.command('savepoint one');
  try {
    await writing.run(text.join(''), bound);
  } catch (error) {
    if (!isRefused(error) && !isNoValue(error)) throw error;
    await writing.command('rollback to savepoint one');
    const reason = `the database does not take it (${error.databaseCode})`;
    return { is: 'rejected', reason, fix: 'correct the record there, or statement of returns' };
  }
  await writing.command('release savepoint one');
  return { is: 'told' };
}
