import type { Command } from 'commander';
import { type FlagsOf, limiting, running } from '../compose/command-options.ts';
import { changeCount } from '../engine/report/run-summary.ts';
import { renderForecast } from '../engine/report/duration-forecast.ts';
import { counted } from '../domain/values/counted.ts';
import { ignoredWords } from '../app/check/surroundings.ts';
import { absenceRulesOf } from '../config/config.ts';
import {
  missingOf,
  missingWords,
  optedOutAfter,
  optedOutWords,
} from '../views/lookup/missing-people.ts';
import { pass, type Pass } from '../app/run/run-command.ts';
import { refuseOverwriting, writePlan } from '../app/run/plan-file.ts';
import type { Shell } from '../compose/process-shell.ts';
import { modeOf } from './sync.ts';
import { lasting } from '../compose/output/format-values.ts';
import { exitCode } from '../compose/output/failure-report.ts';

export const options = {
  ...running,
  ...limiting,
  fast: 'compare the CRM with what is recorded, list nothing',
  all: 'name every record, not ten of each kind of change',
  'out <file>': 'write the plan, without addresses, as JSON: for `sync --plan`',
  'exit-code': `exit ${exitCode('changes')} when there is anything to do`,
};
type Flags = FlagsOf<typeof options>;

/**
 * Shows what a run would do, using the steps of a run. Writes nothing to the platform. With
 * --exit-code, the exit code is 5 if there is anything to do.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  let changes = 0;
  const { out } = flags;
  const begins = (): void => {
    if (out !== undefined) refuseOverwriting(out);
  };
  const adds: Pass['adds'] = async ({ config, mirror, summary }) => {
    const ignored = await ignoredWords(config);
    const missing = missingOf(mirror.snapshot, absenceRulesOf(config));
    const newlyMissing = summary.contacts.missing;
    const who = counted(newlyMissing, 'more person', 'more people');
    const lines = [
      ...(ignored === undefined ? [] : [ignored]),
      ...(missing ? [`missing from the CRM: ${missingWords(missing)}`] : []),
      ...(newlyMissing > 0 && summary.certificate.source === true
        ? [`${who} would be missing from the CRM: ${optedOutWords(optedOutAfter(config))}`]
        : []),
    ];
    const forecast = summary.forecast ? renderForecast(summary.forecast, lasting) : [];
    return [{ lines }, { lines: forecast }];
  };
  const ended: Pass['ended'] = ({ mirror, summary }) => {
    changes = changeCount(summary);
    if (out === undefined || summary.plan === '') return;
    writePlan(out, summary, mirror.clock.now());
    if (!flags.quiet) shell.note(`plan ${summary.plan} written to ${out}`);
  };
  const all = flags.all === true;
  const wanted = { ...modeOf(flags), writes: false, all, begins, adds, ended };
  const code = await pass(flags, shell, wanted);
  const isDone = code === exitCode('done');
  return isDone && flags.exitCode && changes > 0 ? exitCode('changes') : code;
}
