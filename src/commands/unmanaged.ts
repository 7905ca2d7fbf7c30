import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { addDecision } from '../audit/audit-trail.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import {
  acknowledgedUnmanaged,
  countUnmanaged,
  optsOutUnmanaged,
  sayUnmanaged,
} from '../domain/unmanaged-people.ts';
import { counted } from '../domain/values/counted.ts';
import { shortHash } from '../engine/context/person-identity.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { UnmanagedPart } from '../snapshot/tables/unmanaged-people.ts';
import { change, look, type LookFlags, namingOptions } from '../cli/lookup/snapshot-command.ts';
import type { Names } from '../cli/lookup/person-names.ts';
import { deciderOptions, decisionOf, type DeciderFlags } from '../cli/run/decider-options.ts';
import { commandLine } from '../cli/output/printed-commands.ts';
import { table } from '../cli/output/table.ts';
import { apart } from '../cli/output/summary-text.ts';
import type { Shell } from '../cli/compose/process-shell.ts';

interface Flags extends LookFlags, DeciderFlags {
  optOut?: string;
  acknowledge?: string;
  deleted?: true;
  outOfScope?: true;
}

/** Declares the flags of `unmanaged`. */
export function options(command: Command): void {
  deciderOptions(namingOptions(command), 'why; the audit log keeps it')
    .option('--deleted', 'only people whom the CRM marks as deleted')
    .option('--out-of-scope', 'only people whom contacts.include leaves out')
    .option('--opt-out <hash>', 'have the people of the list with this hash opted out')
    .option('--acknowledge <hash>', 'leave them subscribed, and do not list them any more')
    .addHelpText(
      'after',
      '\nLists people whom the CRM marks as deleted, or whom contacts.include leaves out, and who are\n' +
        'subscribed on the platform with a contact that is not of this mirror. No run touches them by\n' +
        'itself. It lists what the last full run found; `crm-mirror sync` finds it anew.\n\n' +
        'A decision is about exactly the people whom the list showed: if the list has changed, its hash\n' +
        'is another one, and nothing is decided (exit 2). Nothing is sent now. The next full run plans\n' +
        'the opt-outs, `crm-mirror plan` shows them, and the guard for deletes counts them. Nobody is\n' +
        'deleted. A person who comes back into the CRM is treated as the CRM says.',
    );
}

/** Lists unmanaged people, or stores what an operator decides about exactly those. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const { optOut, acknowledge } = flags;
  if (optOut !== undefined && acknowledge !== undefined) {
    throw new Invalid('--opt-out and --acknowledge are two decisions', { fix: 'give one of them' });
  }
  const hash = optOut ?? acknowledge;
  const { file, mirror } = loadConfig(flags.config, shell.env);
  if (hash === undefined) {
    return look(flags, shell, ({ snapshot, names }) => {
      if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet: ${firstRun}`);
      return listOf(snapshot ? unmanagedOf(snapshot, flags) : nobody, { mirror, names, flags });
    });
  }
  const isOut = optOut !== undefined;
  const what = isOut ? 'unmanaged: opt out' : 'unmanaged: acknowledge';
  const decision = decisionOf({ what, at: Date.now() }, flags, shell);
  return change(flags, shell, ({ snapshot }) => {
    if (!snapshot) throw new Invalid(`${file}: there is no snapshot yet`, { fix: firstRun });
    const found = unmanagedOf(snapshot, flags);
    if (found.hash !== hash.trim().toLowerCase()) {
      const now = found.hash === '' ? 'nobody is listed' : `it is ${found.hash} now`;
      throw new Invalid(`no list with the hash ${hash}: ${now}`, {
        fix: 'look at the list again with `crm-mirror unmanaged`',
      });
    }
    snapshot.transaction(() => {
      for (const part of found.parts) {
        const fix = isOut ? optsOutUnmanaged : acknowledgedUnmanaged;
        snapshot.unmanaged.decide('contact', part, isOut ? 'opt_out' : 'acknowledged', fix);
      }
      for (const key of found.keys) addDecision(snapshot, decision, key);
    });
    const n = found.keys.length;
    const who = counted(n, 'person', 'people');
    const lines = isOut
      ? [`The next full run opts out ${who}. \`crm-mirror plan\` shows it.`]
      : [
          `${who} ${n === 1 ? 'stays' : 'stay'} subscribed, and ${n === 1 ? 'is' : 'are'} not listed any more.`,
        ];
    return { document: { mirror, decided: isOut ? 'opt_out' : 'acknowledged', people: n }, lines };
  });
}

const firstRun = 'run `crm-mirror sync` first';

interface Found {
  parts: readonly UnmanagedPart[];
  /** The people, each once. */
  keys: readonly string[];
  /** Identifies exactly these people and channels; '' for nobody. */
  hash: string;
}

const nobody: Found = { parts: [], keys: [], hash: '' };

/** Returns the people of whom nobody has decided anything. */
function unmanagedOf(
  { unmanaged, meta }: Snapshot,
  { deleted, outOfScope }: Pick<Flags, 'deleted' | 'outOfScope'>,
): Found {
  const isAll = deleted === outOfScope;
  const isMeant = ({ cause }: UnmanagedPart): boolean =>
    isAll || (cause === 'deleted-subscribed') === (deleted === true);
  const parts = unmanaged.open('contact').filter(isMeant);
  if (parts.length === 0) return nobody;
  const hash = createHash('sha256');
  for (const { key, part } of parts) hash.update(`${shortHash(meta, key)} ${part}\n`);
  const keys = [...new Set(parts.map(({ key }) => key))];
  return { parts, keys, hash: hash.digest('hex').slice(0, 16) };
}

function listOf(
  { parts, keys, hash }: Found,
  { mirror, names, flags }: { mirror: string; names: Names; flags: Flags },
) {
  const people = keys.map((key) => {
    const own = parts.filter((part) => part.key === key);
    const cause = own[0]?.cause ?? 'deleted-subscribed';
    return {
      person: names({ kind: 'contact', key }),
      cause,
      channels: own.map(({ part }) => part),
    };
  });
  const counts = countUnmanaged(people.map(({ cause }) => ({ cause, count: 1 })));
  const document = { mirror, hash, ...counts, people };
  if (keys.length === 0) {
    return {
      document,
      lines: ['Nobody is left to decide about.'],
    };
  }
  const which = `unmanaged${flags.deleted ? ' --deleted' : ''}${flags.outOfScope ? ' --out-of-scope' : ''}`;
  const rows = people.map(({ person, cause, channels }) => [
    person,
    causes[cause],
    channels.join(', '),
  ]);
  const lines = [
    ...sayUnmanaged(counts),
    ...apart(table(rows, { indent: 2 })),
    '',
    `To have exactly these opted out: ${commandLine(`${which} --opt-out ${hash}`, flags.config)}`,
    `To leave them as they are:       ${commandLine(`${which} --acknowledge ${hash}`, flags.config)}`,
  ];
  return { document, lines };
}

const causes = {
  'deleted-subscribed': 'deleted in the CRM',
  'out-of-scope-subscribed': 'left out by contacts.include',
} as const;
