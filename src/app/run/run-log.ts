/** The machine-readable log of a command, and how much of it and of the output is shown. */
import { pino } from 'pino';
import { renderProblem } from '../../domain/errors.ts';
import type { Summary } from '../../engine/report/run-summary.ts';
import type { ErasedOne } from '../../engine/erasure/privacy-deletions.ts';
import type { Sighting } from '../../engine/watch/unsubscribe-watch.ts';
import type { Alert } from '../../views/status/run-history.ts';
import { statusWords } from '../../views/status/run-sections.ts';
import type { Notice } from '../../views/status/trouble-notice.ts';
import type { QuietFlags } from '../../compose/command-options.ts';
import type { Shell } from '../../compose/process-shell.ts';
import type { Measured } from '../../compose/run-progress.ts';

/** The machine-readable log: JSON lines on stderr without addresses or secrets. */
export type Log = ReturnType<typeof createLog>;

const blind: Partial<Record<Sighting['is'], string>> = {
  unproven: renderProblem({
    reason: 'platform.apiKey is not the one before',
    fix: 'the next run proves whose it is',
  }),
  uncounted: renderProblem({
    reason: 'the platform does not count its opt-outs',
    fix: 'only full runs find them',
  }),
};

const left = {
  shared: 'another record there has the address, so the person is not forgotten',
  held: 'awaiting approval by the guard for deletes; `status` shows how to forget the person',
};

/** A command that writes nothing logs only if asked to. */
export function hushed(shell: Shell, flags: QuietFlags, writes: boolean): Shell {
  const isSilent = flags.quiet === true || !writes;
  const logLevel = flags.logLevel ?? (isSilent ? 'silent' : undefined);
  const own = { ...shell, ...(logLevel !== undefined && { logLevel }) };
  return flags.quiet ? { ...own, interactive: false, quiet: true } : own;
}

/** Unless a level is asked for, it is silent on a terminal: people read the results there. */
export function createLog(shell: Shell, mirror: string) {
  const level = shell.logLevel ?? (shell.interactive ? 'silent' : 'info');
  const log = pino({ base: { mirror }, level }, { write: (line) => shell.note(line.trimEnd()) });
  let before: Sighting['is'] = 'still';
  return {
    going(line: string, measured: Measured): void {
      const { phase, kind, done, total, perSecond, leftMs } = measured;
      log.info({ phase, kind, done, total, perSecond, leftMs }, line);
    },
    /** Logs the sentinel when it has listed something, and once when it cannot work. */
    saw(sighting: Sighting): void {
      const { is, pages } = sighting;
      const isNews = is !== before;
      before = is;
      if (pages > 0) log.info(sighting, `unsubscribe check: ${is}`);
      else if (isNews && blind[is] !== undefined)
        log.warn(sighting, `unsubscribe check: ${blind[is]}`);
    },
    erased({ person, ...one }: ErasedOne): void {
      if (!('told' in one)) {
        log.warn({ person }, `erased in the CRM: ${left[one.is]}`);
        return;
      }
      const { done, failure: _, also, ...told } = one.told;
      const { optedOut, deleted, purged } = done;
      const counts = { found: done.found?.length, optedOut, deleted: deleted.length, purged };
      log.info({ person, ...counts, ...told, also: also.length }, `erased in the CRM: ${one.is}`);
    },
    alerted: ({ text, ...alert }: Alert) => log.warn(alert, text),
    reset: (told: { person: string; by: string; reason: string; at: string }) =>
      log.info(told, 'reset: the next run reads the person again'),
    /** `why`: why it could not be sent; `but`: who behind the receiver does not get it. */
    noticed(
      notice: Notice | undefined,
      why?: string,
      about?: { to: string; but?: string | undefined },
    ): void {
      const fields = { ...notice, ...about };
      const failed = 'a notification could not be sent; the next run tries again';
      if (why !== undefined) log.warn({ ...fields, why }, failed);
      else log[about?.but === undefined ? 'info' : 'warn'](fields, notice?.type);
    },
    ended(
      { status, problems, cannot, groups: _, mirror: __, reasonCodes: ___, ...summary }: Summary,
      what: 'run' | 'plan' | 'event',
    ): void {
      const at = status === 'failed' ? 'error' : 'info';
      // Both hold addresses, so that only their numbers are logged.
      const counts = {
        problems: problems.length,
        cannot: cannot?.reduce((sum, { count }) => sum + count, 0),
      };
      // The words of a status say what it means: a run that is `rejected` has done all it could.
      log[at]({ ...summary, ...counts }, `${what} ${statusWords({ status, only: null })}`);
    },
  };
}
