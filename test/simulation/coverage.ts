/**
 * What a simulation has reached: rules that were put to the test, rows of the truth table that
 * decided, quirks, faults, acts. What is never reached is not tried, whatever its authors believe.
 */
import { gates } from '../../src/records/contact/consent/gates.ts';
import { rules as consentRules } from '../../src/records/contact/consent/rules.ts';
import { type Rule, rules } from './checks/rules.ts';
import { choices, settingsOf } from './story/story.ts';

/** The gates that no story meets, and why. contact-gates.test.ts tries each of them. */
const unmet: Record<string, string> = {
  'left-replaced-channel': 'no channel of a story is replaced',
  protected: 'no story sets contacts.protect',
  'opt-ins-off': 'no story sets policy.optIns',
  'channel-lost': 'a channel is lost when ten people lose it, and stories have fewer',
  undone: 'only stories in which runs are undone meet it (seeds.long.test.ts)',
  'out-of-scope-unmanaged': 'no story sets contacts.include',
  'unmanaged-out': 'no story decides about people who are not ours (unmanaged.test.ts)',
  'our-opt-out-recorded': 'too rare: our opt-out of a foreign contact, which then vanishes',
};
const decisions = [...consentRules, ...gates].map(({ id }) => id).filter((id) => !(id in unmet));

/** The rules that judge only stories in which runs are undone, or in which there is a canary. */
const ofOthers: ReadonlySet<Rule> = new Set<Rule>([
  'what was undone stays so until the CRM states something else',
  'only what a run opted in is taken back',
  'many changes of an occasion begin with the slice of a canary',
  'nobody outside the slice is changed while a canary is open',
]);

/** Everything there is to reach. */
const groups = {
  row: { title: 'Rules and gates of consent that decided', names: decisions },
  rule: {
    title: 'Rules that had a case to judge',
    names: rules.filter((one) => !ofOthers.has(one)),
  },
  act: { title: 'Acts that changed something', names: choices.acts },
  run: { title: 'What happened during a run', names: choices.events },
  fault: { title: 'Faults that met a request', names: choices.faults },
  quirk: { title: 'Quirks of the platform', names: choices.quirks },
  setting: { title: 'Settings', names: choices.settings },
} as const;
type Group = keyof typeof groups;

/** How often, and in how many seeds. */
interface Count {
  times: number;
  seeds: number;
}

/** By group and name. */
export type Counts = Partial<Record<Group, Record<string, Count>>>;

export interface Reached {
  note(group: Group, name: string): void;
  counts(): Counts;
}

/** Of one seed. */
export function createReached(story: Parameters<typeof settingsOf>[0]): Reached {
  const counts: Counts = {};
  const note: Reached['note'] = (group, name) => {
    const count = countIn(counts, group, name);
    count.times += 1;
    count.seeds = 1;
  };
  for (const quirk of story.quirks) note('quirk', quirk);
  for (const setting of settingsOf(story)) note('setting', setting);
  return { note, counts: () => counts };
}

function countIn(counts: Counts, group: Group, name: string): Count {
  counts[group] ??= {};
  const names = counts[group];
  names[name] ??= { times: 0, seeds: 0 };
  return names[name];
}

export function addUp(all: readonly Counts[]): Counts {
  const sum: Counts = {};
  for (const { group, name, times, seeds } of all.flatMap(listed)) {
    const count = countIn(sum, group, name);
    count.times += times;
    count.seeds += seeds;
  }
  return sum;
}

function listed(counts: Counts): (Count & { group: Group; name: string })[] {
  return groupNames.flatMap((group) =>
    Object.entries(counts[group] ?? {}).map(([name, count]) => ({ group, name, ...count })),
  );
}

const groupNames: readonly Group[] = ['row', 'rule', 'act', 'run', 'fault', 'quirk', 'setting'];

/** A table, and what it lacks or has too much: each of those a line that says "never" or "new". */
export function tableOf(counts: Counts): string[] {
  return groupNames.flatMap((group) => {
    const { title, names } = groups[group];
    const found = counts[group] ?? {};
    const all = new Set([...names, ...Object.keys(found)]);
    const known = new Set<string>(names);
    const lines = [...all].map((name) => {
      const { times, seeds } = found[name] ?? { times: 'never', seeds: '' };
      return line(`  ${name}`, [times, seeds], known.has(name) ? '' : '  new: no list has it');
    });
    return [line(title, ['times', 'seeds'], ''), ...lines, ''];
  });
}

function line(name: string, cells: readonly (number | string)[], odd: string): string {
  return `${name.padEnd(64)}${cells.map((cell) => `${cell}`.padStart(8)).join('')}${odd}`;
}
