import { createHash } from 'node:crypto';
import { type Called, by, type FlagsOf, naming, commandLine } from '../compose/command-options.ts';
import { addDecision } from '../store/memory/audit-trail.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import {
  acknowledgedUnmanaged,
  countUnmanaged,
  decideUnmanaged,
  optsOutUnmanaged,
  protectedUnmanaged,
  sayUnmanaged,
  type UnmanagedAs,
  type UnmanagedCause,
  unmanagedCauses,
} from '../domain/unmanaged-people.ts';
import { counted } from '../domain/values/counted.ts';
import { shortHash } from '../engine/context/person-identity.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { UnmanagedPart } from '../store/tables/known-problems.ts';
import { change, look } from '../app/snapshot-command.ts';
import type { Names } from '../views/lookup/person-names.ts';
import { decisionOf } from '../app/run/flag-values.ts';
import type { Section } from '../views/sections.ts';
import type { Shell } from '../compose/process-shell.ts';

/** By its flag: what is stored, what the problem says then, and what the audit log says. */
const decisions = {
  'opt-out': { stores: 'opt_out', fix: optsOutUnmanaged, audit: 'opt out' },
  acknowledge: { stores: 'acknowledged', fix: acknowledgedUnmanaged, audit: 'acknowledge' },
  withdraw: { stores: null, fix: undefined, audit: 'withdraw' },
} as const;
type How = keyof typeof decisions;

export const options = {
  ...naming,
  'reason <text>': 'why; the audit log keeps it',
  ...by,
  deleted: 'only people whom the CRM marks as deleted',
  'out-of-scope': 'only people whom contacts.include leaves out',
  'decided <decision>': {
    text: 'only people about whom that is decided already; without it, only the others',
    choices: ['opt-out', 'acknowledge'] as const,
  },
  'opt-out <hash>': 'have the people of the list with this hash opted out',
  'acknowledge <hash>': 'leave them subscribed, and do not list them any more',
  'withdraw <hash>': 'take the decision about them back (with --decided)',
};
type Flags = FlagsOf<typeof options>;

export const help = `
Lists people whom the CRM marks as deleted, or whom contacts.include leaves out, and who are
subscribed on the platform with a contact that is not of this mirror. No run touches them by
itself. It lists what the last full run found; \`crm-mirror sync\` finds it anew.

A decision is about exactly the people whom the list showed: if the list has changed, its hash is
another one, and nothing is decided (exit 2). Nothing is sent now. The next full run plans the
opt-outs, \`crm-mirror plan\` shows them, and the guard for deletes counts them. Nobody is
deleted. A person who comes back into the CRM is treated as the CRM says. People whom
contacts.protect covers are listed as protected, and --opt-out leaves them out.

A later decision replaces an earlier one: --decided lists the people with that decision, and the
hash of that list decides anew, or takes the decision back. An opt-out that a run has sent is not
taken back.`;

export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const { file, mirror } = loadConfig(flags.config, shell.env);
  const hashes: Record<How, string | undefined> = {
    'opt-out': flags.optOut,
    acknowledge: flags.acknowledge,
    withdraw: flags.withdraw,
  };
  const [asked, second] = hows.flatMap((how) => {
    const hash = hashes[how];
    return hash === undefined ? [] : [{ how, hash }];
  });
  if (asked && second) {
    const names = `--${asked.how} and --${second.how}`;
    throw new Invalid(`${names} are two decisions`, { fix: 'give one of them' });
  }
  if (asked?.how === 'withdraw' && flags.decided === undefined) {
    throw new Invalid('--withdraw takes a decision back, and nothing is decided about this list', {
      fix: 'add --decided opt-out or --decided acknowledge, with the hash of that list',
    });
  }
  if (!asked) {
    return look(flags, shell, ({ snapshot, names }) => {
      if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet: ${firstRun}`);
      return listOf(foundIn(snapshot, flags), { mirror, names, flags });
    });
  }
  const { how, hash } = asked;
  const { stores, audit, fix } = decisions[how];
  const decision = decisionOf({ what: `unmanaged: ${audit}`, at: Date.now() }, flags, shell);
  return change(flags, shell, ({ snapshot }) => {
    if (!snapshot) throw new Invalid(`${file}: there is no snapshot yet`, { fix: firstRun });
    const { people, hash: now } = foundIn(snapshot, flags);
    if (now !== hash.trim().toLowerCase()) {
      const is = now === '' ? 'nobody is listed' : `it is ${now} now`;
      throw new Invalid(`no list with the hash ${hash}: ${is}`, {
        fix: `look at the list again with \`crm-mirror ${listing(flags)}\``,
      });
    }
    const meant = people.filter(({ isProtected }) => how !== 'opt-out' || !isProtected);
    const left = people.length - meant.length;
    if (meant.length === 0) {
      throw new Invalid(`nobody of this list is opted out: ${protectedWords(left)}`, {
        fix: unprotect,
      });
    }
    snapshot.transaction(() => {
      for (const { key, isProtected, parts } of meant) {
        const next = fix ?? (isProtected ? protectedUnmanaged : decideUnmanaged);
        for (const part of parts)
          snapshot.unmanaged.decide({ kind: 'contact', key, part, as: stores, fix: next });
        addDecision(snapshot, decision, key);
      }
    });
    const document = { mirror, decided: stores, people: meant.length, protected: left };
    return { document, lines: sayDecided(how, { n: meant.length, left, flags }) };
  });
}

const hows: readonly How[] = ['opt-out', 'acknowledge', 'withdraw'];
const firstRun = 'run `crm-mirror sync` first';
const unprotect =
  'to opt them out, take them out of contacts.protect and run `crm-mirror sync`, or use ' +
  '`crm-mirror resolve` for one person';

/** `left`: how many people the decision leaves out as protected. */
function sayDecided(how: How, { n, left, flags }: { n: number; left: number; flags: Flags }) {
  const who = counted(n, 'person', 'people');
  const is = n === 1 ? 'is' : 'are';
  if (how === 'withdraw') return [`${who} ${is} listed again, and nothing is decided about them.`];
  const back = commandLine(`unmanaged --decided ${how}`, flags.config);
  if (how === 'acknowledge') {
    return [
      `${who} ${n === 1 ? 'stays' : 'stay'} subscribed, and ${is} not listed any more.`,
      `To take that back: ${back}`,
    ];
  }
  return [
    `The next full run opts out ${who}. \`crm-mirror plan\` shows it.`,
    ...(left > 0 ? [`${protectedWords(left)}: ${unprotect}.`] : []),
    `Until a run has sent that, it can be taken back: ${back}`,
  ];
}

function protectedWords(n: number): string {
  const stay = `${counted(n, 'person', 'people')} ${n === 1 ? 'stays' : 'stay'}`;
  return `${stay} subscribed, because contacts.protect covers them`;
}

interface Person {
  key: string;
  cause: UnmanagedCause;
  as: UnmanagedAs;
  isProtected: boolean;
  decided: UnmanagedPart['decided'];
  parts: string[];
}

/** `hash` identifies exactly these people and channels, and is '' for nobody. */
function foundIn(snapshot: Snapshot | undefined, { deleted, outOfScope, decided }: Partial<Flags>) {
  const isAll = deleted === outOfScope;
  const isMeant = ({ cause }: UnmanagedPart): boolean =>
    isAll || (unmanagedCauses[cause].as === 'deleted') === (deleted === true);
  const all = snapshot?.unmanaged.list('contact').filter(isMeant) ?? [];
  const having = (how: How): Person[] => {
    const found = new Map<string, Person>();
    for (const { key, part, cause, decided } of all) {
      if (decided !== decisions[how].stores) continue;
      const known = found.get(key) ?? { key, cause, decided, parts: [], ...unmanagedCauses[cause] };
      found.set(key, { ...known, parts: [...known.parts, part] });
    }
    return [...found.values()];
  };
  // Nothing is decided about those whose decision was withdrawn, and about all others.
  const people = having(decided ?? 'withdraw');
  const hash = createHash('sha256');
  for (const { key, isProtected, parts } of people) {
    const is = isProtected ? ' protected' : '';
    const name = snapshot && shortHash(snapshot.meta, key);
    for (const part of parts) hash.update(`${name} ${part}${is}\n`);
  }
  return {
    people,
    hash: people.length === 0 ? '' : hash.digest('hex').slice(0, 16),
    decided: { 'opt-out': having('opt-out').length, acknowledge: having('acknowledge').length },
  };
}

function listOf(
  { people, hash, decided }: ReturnType<typeof foundIn>,
  { mirror, names, flags }: { mirror: string; names: Names; flags: Flags },
) {
  const counts = countUnmanaged(people.map(({ cause }) => ({ cause, count: 1 })));
  const left = people.filter(({ isProtected }) => isProtected).length;
  const document = {
    mirror,
    hash,
    ...counts,
    protected: left,
    decided: { optOut: decided['opt-out'], acknowledged: decided.acknowledge },
    people: people.map((person) => ({
      person: names({ kind: 'contact', key: person.key }),
      cause: person.cause,
      protected: person.isProtected,
      decided: person.decided,
      channels: person.parts,
    })),
  };
  const say = (how: 'opt-out' | 'acknowledge', what: string): string[] => {
    const n = decided[how];
    if (n === 0 || flags.decided === how) return [];
    const who = `${counted(n, 'person', 'people')} ${n === 1 ? 'is' : 'are'} ${what}`;
    const list = commandLine(listing({ ...flags, decided: how }), flags.config);
    return [`${who}; to list them, or take that back: ${list}`];
  };
  const also = [...say('opt-out', 'to be opted out'), ...say('acknowledge', 'acknowledged')];
  if (people.length === 0) {
    return {
      document,
      lines: [flags.decided ? noneSo : 'Nobody is left to decide about.', ...also],
    };
  }
  const rows = people.map(({ key, as, isProtected, parts }) => [
    names({ kind: 'contact', key }),
    named[as] + (isProtected ? ', protected by contacts.protect' : ''),
    parts.join(', '),
  ]);
  const ways: [How, string][] = [
    ['opt-out', 'to have exactly these opted out'],
    ['acknowledge', 'to leave them as they are'],
    ['withdraw', 'to take the decision back'],
  ];
  const open = ways.filter(
    ([how]) =>
      how !== (flags.decided ?? 'withdraw') &&
      (how !== 'opt-out' || people.some(({ isProtected }) => !isProtected)),
  );
  const sections: Section[] = [
    { lines: [...sayUnmanaged(counts), ...(flags.decided ? [standing[flags.decided]] : [])] },
    { table: { columns: ['person', 'is', 'channels'], rows } },
    {
      lines: left > 0 ? [`${protectedWords(left)}: ${unprotect}.`] : [],
      facts: open.map(([how, label]) => [
        label,
        commandLine(`${listing(flags)} --${how} ${hash}`, flags.config),
      ]),
    },
    { lines: also },
  ];
  return { document, sections };
}

const named = {
  deleted: 'deleted in the CRM',
  outOfScope: 'left out by contacts.include',
} as const;
const noneSo = 'Nobody with that decision is left.';
const standing = {
  'opt-out': 'An operator decided to opt them out, and no run has sent that yet.',
  acknowledge: 'An operator has acknowledged that they stay subscribed.',
} as const;

function listing({ deleted, outOfScope, decided }: Partial<Flags>): string {
  return [
    'unmanaged',
    ...(deleted ? ['--deleted'] : []),
    ...(outOfScope ? ['--out-of-scope'] : []),
    ...(decided ? [`--decided ${decided}`] : []),
  ].join(' ');
}
