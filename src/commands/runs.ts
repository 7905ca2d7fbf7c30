import { type Called, countOf, naming, verbose } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import { look } from '../app/snapshot-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { changeOf, listedRuns, totalOf } from '../views/status/run-history.ts';
import {
  changeItem,
  changesWords,
  requestsSection,
  runSection,
  runsSection,
} from '../views/status/run-sections.ts';

const runsShown = 20;
const changesShown = 100;

export const options = {
  ...naming,
  ...verbose,
  '[id]': 'one run, with its changes',
  'limit <n>': `how many: runs, the newest first (${runsShown}), or changes of one, the gravest first (${changesShown})`,
};

export const help = `
Shows the runs of the time that \`keep\` states. A run that was killed counts as interrupted. Of
the changes of one run, those that failed come first. A change that was no longer right when it
was to be sent is not sent: the same run or the next one decides again.`;

export async function run({ flags, args: [id] }: Called<typeof options>, shell: Shell) {
  const isVerbose = flags.verbose === true;
  const last = countOf(flags.limit) ?? (id === undefined ? runsShown : changesShown);
  return look(flags, shell, (seen) => {
    const { config, snapshot, names } = seen;
    if (id === undefined) {
      const runs = listedRuns(seen, snapshot?.runs.newest(last) ?? []);
      const why = snapshot ? '' : `: there is no snapshot yet at ${config.snapshot}`;
      const none = `No runs of ${config.mirror} yet${why}`;
      return {
        document: { mirror: config.mirror, runs },
        sections: [runsSection(runs, { isVerbose, none })],
      };
    }
    const kept = snapshot?.runs.get(id);
    const [run] = kept ? listedRuns(seen, [kept]) : [];
    if (!snapshot || !run) {
      throw new Invalid(`no run ${id} in ${config.snapshot}`, {
        fix: '`crm-mirror runs` lists them',
      });
    }
    const shown = snapshot.outcomes
      .gravest(id, last)
      .map((change) => ({ told: changeOf(change, names(change)), record: change, rule: null }));
    const more = totalOf(run.changes) - shown.length;
    const rest = `… and ${more} more (--limit ${last + more} shows all)`;
    return {
      document: { mirror: config.mirror, ...run, listed: shown.map(({ told }) => told), more },
      sections: [
        runSection(run, `Run ${id} of ${config.mirror}`, isVerbose),
        ...(isVerbose ? [requestsSection(run)] : []),
        {
          title: 'Changes',
          lines: [
            changesWords(run.changes, run.status),
            ...shown.map((one) => changeItem(one, run)),
            ...(more > 0 ? [rest] : []),
          ],
        },
      ],
    };
  });
}
