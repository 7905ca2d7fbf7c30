import type { Command } from 'commander';
import type { RecordProblem } from '../domain/record-problem.ts';
import { liftQuarantine } from '../engine/context/platform-quarantine.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { change, type LookFlags, namingOptions } from '../cli/lookup/snapshot-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { namedBy, wordOf } from '../cli/lookup/person-names.ts';
import { counted } from '../domain/values/counted.ts';

type Named = Pick<RecordProblem, 'kind' | 'key'>;

/** Declares the flags of `retry`. */
export function options(command: Command): void {
  namingOptions(command)
    .argument('[record]', 'an address, a hash or the key of a template; everything when left out')
    .addHelpText(
      'after',
      '\nWhat the platform refused is not sent again until its record changes; an opt-out is tried\n' +
        'again after 1, 2, 4 ... hours, at most daily. After this the next run sends it once more,\n' +
        'if the CRM still wants it; until then it counts as rejected.\n' +
        'Without a name it also ends a quarantine, in which nothing but opt-outs is sent.',
    );
}

/** Lets the next run retry rejected changes. Sends nothing now. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const [who] = command.args;
  const wanted = who === undefined ? undefined : wordOf(who);
  return change(command.opts<LookFlags>(), shell, ({ config, snapshot, names }) => {
    const records = snapshot ? chosen(snapshot, wanted) : [];
    const changes = snapshot ? release(snapshot, records) : 0;
    const returns = snapshot ? releaseReturns(snapshot, wanted) : 0;
    const lifted = snapshot !== undefined && wanted === undefined && lift(snapshot);
    const document = {
      mirror: config.mirror,
      records: records.length,
      changes,
      returns,
      quarantineLifted: lifted,
    };
    const isNothing = records.length === 0 && returns > 0;
    const line = lineOf(records, changes, records.map(names)[0] ?? who);
    const lines = [
      ...(isNothing ? [] : [line]),
      ...(returns > 0
        ? [`The next run reports ${counted(returns, 'opt-out')} to the CRM again.`]
        : []),
      ...(lifted ? ['The quarantine is over.'] : []),
    ];
    return { document, lines };
  });
}

function chosen(snapshot: Snapshot, wanted: string | undefined): Named[] {
  const parked = snapshot.retryLater.records();
  if (wanted === undefined) return parked;
  return parked.filter(namedBy(wanted, snapshot));
}

function release({ retryLater, transaction }: Snapshot, records: readonly Named[]): number {
  return transaction(() => records.reduce((sum, record) => sum + retryLater.release(record), 0));
}

/** Lets the next run report opt-outs again that the CRM rejected. */
function releaseReturns(snapshot: Snapshot, wanted: string | undefined): number {
  const { optOutReports, transaction } = snapshot;
  const isMeant = wanted === undefined ? () => true : namedBy(wanted, snapshot);
  const keys = optOutReports.refused('contact').filter((key) => isMeant({ kind: 'contact', key }));
  return transaction(() =>
    keys.reduce((sum, key) => sum + optOutReports.release('contact', key), 0),
  );
}

function lift({ meta, transaction }: Snapshot): boolean {
  return transaction(() => liftQuarantine(meta));
}

function lineOf(records: readonly Named[], changes: number, who: string | undefined): string {
  if (records.length === 0)
    return `Nothing waits to be tried again${who === undefined ? '' : ` for ${who}`}.`;
  const of = records.length === 1 ? who : counted(records.length, 'record');
  return `The next run tries ${counted(changes, 'change')} of ${of} again.`;
}
