/**
 * What a simulation has reached: rules that were put to the test, rows of the truth table that
 * decided, quirks, faults, acts. What is never reached is not tried, whatever its authors believe.
 */
import { rules } from './checks/rules.ts';
import { choices, settingsOf } from './story/story.ts';

/**
 * Every row with what it does. Not among them: 0, since no combination is without a row; 21, since
 * no channel is replaced.
 */
const rows = [
  '1 nothing',
  '2 delete',
  '3 nothing',
  '3 opt_out',
  '4 nothing',
  '5 nothing',
  '6 opt_out',
  '7 nothing',
  '8 nothing',
  '9 conflict',
  '10 nothing',
  '11 create',
  '11 conflict',
  '12 create',
  '13 opt_in',
  '14 conflict',
  '15 conflict',
  '16 opt_in',
  '16 conflict',
  '17 opt_in',
  '17 conflict',
  '18 conflict',
  '19 conflict',
  '20 conflict',
  '22 opt_out',
  '23 conflict',
  '24 conflict',
  '25 conflict',
  '28 conflict',
  '29 opt_out',
  '30 opt_out',
  '30 conflict',
];

/** Everything there is to reach. */
const groups = {
  row: { title: 'Rows of the truth table that decided', names: rows },
  rule: { title: 'Rules that had a case to judge', names: rules },
  act: { title: 'Acts that changed something', names: choices.acts },
  run: { title: 'What befell a run', names: choices.befalls },
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
