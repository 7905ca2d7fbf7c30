/**
 * Shows many mirrors as one table, those that need attention first: how each stands and why, what
 * awaits approval, and how old its last proof is. What several mirrors have in common is one line.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Busy, renderProblem } from '../../domain/errors.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import { stepWords } from '../../compose/run-progress.ts';
import { withConfig } from '../../compose/command-options.ts';
import { byWords, range, instant, lasting } from '../../compose/output/format-values.ts';
import {
  listed,
  names,
  numbers,
  present,
  type Section,
  type Span,
  type TableRow,
  type Text,
} from '../sections.ts';
import {
  ago,
  type Attention,
  attentionOf,
  causes,
  outageLines,
  rank,
  shortReason,
  stoppedWords,
  unexplained,
  unreadable,
  worstFirst,
} from './attention.ts';
import { type CurrentStatus, readCurrentStatus, statusWithoutSnapshot } from './status-document.ts';
import {
  exceptionLinks,
  exceptions,
  heldRecords,
  type MirrorState,
  mirrorStates,
  openCount,
  problemCount,
  stateWord,
} from './status-sections.ts';
import { type Fleet, servedBy, unserved } from '../../compose/fleet/fleet.ts';

/** The status of a mirror, and what follows from it. It names no person by address. */
export interface Standing {
  status: CurrentStatus;
  attention: Attention[];
}

/** A mirror among others. `worker`: who serves it, if that is known. */
export interface ShownMirror extends Standing {
  config: Config;
  worker?: string | undefined;
}

/**
 * Reads the status of a mirror. A snapshot that cannot be read is what needs attention.
 * `timeoutMs`: how long a lock of the snapshot is waited for.
 */
export function readStanding(config: Config, timeoutMs?: number): Standing {
  let status: CurrentStatus;
  try {
    status = readCurrentStatus(config, timeoutMs);
  } catch (error) {
    const fault = unreadable(error);
    if (!fault) throw error;
    status = statusWithoutSnapshot(config);
    return { status, attention: worstFirst([fault, ...outageLines(status.outages, status.at)]) };
  }
  return { status, attention: attentionOf(status) };
}

/** Reads the status of a mirror of a list, which a locked snapshot does not end. */
export function readListed(config: Config, read = () => readStanding(config)): Standing {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Busy)) throw error;
    const text = `nothing is known of this mirror now: ${error.problems[0].reason}`;
    const fix = 'another process has locked its snapshot: look again in a moment';
    const locked = { code: 'snapshot_unreadable', text, fix, since: null } as const;
    return { status: statusWithoutSnapshot(config), attention: [locked] };
  }
}

/** Returns the state of a mirror; the table is sorted by it. */
export function stateOf({ status, attention }: Standing): MirrorState {
  return stateWord(status, attention).is;
}

/** Returns the document of a mirror among others, which is its row as JSON. */
export function mirrorRow(shown: ShownMirror) {
  const { status, attention, worker } = shown;
  const [worst] = attention;
  const held = heldRecords(status);
  const { running, proven } = status;
  return {
    mirror: status.mirror,
    state: stateOf(shown),
    ok: attention.length === 0,
    cause: worst ? { ...worst, isDaily: undefined } : null,
    more: Math.max(0, attention.length - 1),
    problems: problemCount(status),
    waiting: openCount(status),
    /** When the first held opt-outs are applied without approval. */
    waitingUntil: held.flatMap(({ until }) => until ?? []).toSorted()[0] ?? null,
    running: running && { share: running.share, leftMs: running.leftMs },
    provenAgeMs: proven?.ageMs ?? null,
    worker: worker ?? null,
  };
}

/** Returns the mirrors, worst first. */
export function sortMirrors<One extends Standing>(mirrors: readonly One[]): One[] {
  const order = Object.keys(mirrorStates);
  const place = (one: Standing): number => {
    const [worst] = one.attention;
    const state = stateOf(one);
    if (state === 'attention' && worst) return rank(worst.code);
    const isBut = state === 'well' && exceptions(one.status) !== '';
    return 1_000 + 2 * order.indexOf(state) - (isBut ? 1 : 0);
  };
  return mirrors.toSorted(
    (a, b) => place(a) - place(b) || a.status.mirror.localeCompare(b.status.mirror),
  );
}

/** Returns whether a mirror counts among those in a state; a paused one may need attention, too. */
export function isIn(one: Standing, state: string): boolean {
  return stateOf(one) === state || (state === 'paused' && one.status.paused !== null);
}

/** Names who paused a mirror, and why. */
export function pausedBy({ by, reason }: NonNullable<CurrentStatus['paused']>): string {
  return byWords({ by, reason: reason || null });
}

/** Returns the paused mirrors by who paused them and why, the newest pause first. */
export function pausesOf<One extends Standing>(mirrors: readonly One[]): Map<string, One[]> {
  const since = ({ status }: One): string => status.paused?.since ?? '';
  const paused = mirrors.filter(({ status }) => status.paused);
  const newest = paused.toSorted((a, b) => since(b).localeCompare(since(a)));
  return Map.groupBy(newest, ({ status }) => (status.paused ? pausedBy(status.paused) : ''));
}

/**
 * Returns what several mirrors have in common, and the table of all. `saysFix`: with what to do, as
 * commands; a browser has links instead. The id of a row is the mirror.
 */
export function mirrorsSections(mirrors: readonly ShownMirror[], saysFix = true): Section[] {
  const hasWorkers = new Set(mirrors.map(({ worker }) => worker)).size > 1;
  const columns = [
    names('Mirror'),
    'State',
    numbers('Waiting'),
    'Last proof',
    ...(hasWorkers ? ['Worker'] : []),
    'Cause',
  ];
  const rows = sortMirrors(mirrors).map((one): TableRow => {
    const { tone, short } = stateWord(one.status, one.attention);
    const { mirror, waiting, waitingUntil, provenAgeMs, worker } = mirrorRow(one);
    const { running } = one.status;
    const left = running?.leftMs ?? null;
    const end = left === null ? '' : `, ${lasting(left)} left`;
    const fix = fixOf(one);
    return {
      id: mirror,
      cells: [
        { page: mirror, text: mirror },
        { tone, text: short },
        waiting === 0 ? '' : withCommas(waiting),
        provenAgeMs === null ? 'none' : `${range(provenAgeMs)} ago`,
        ...(hasWorkers ? [worker ?? 'nobody'] : []),
        causeWords(one),
      ],
      notes: present(
        saysFix && fix !== '' && withConfig(fix, one.config.file),
        running && `the run in progress: ${stepWords(running)}${end}`,
        waitingUntil !== null && `the opt-outs are applied by themselves at ${waitingUntil}`,
      ),
    };
  });
  const table = { columns, rows, leavesOut: ['Worker', 'Last proof', 'Waiting'] };
  return [...incidents(mirrors), { table, none: 'There is no such mirror.' }];
}

/** Returns what to do about the worst that needs attention; '' if nothing does. */
export function fixOf(one: Standing): string {
  const [worst] = one.attention;
  return worst && stateOf(one) === 'attention' ? `→ ${worst.fix}` : '';
}

/** The shortest words for what is wrong, and since when. */
function causeWords(one: ShownMirror): Text {
  const { status, config } = one;
  const [worst, ...others] = unexplained(status, one.attention);
  if (!worst || stateOf(one) === 'first') {
    // No worker has ever run its schedule.
    const isUnserved = config.schedule !== undefined && status.worker === null;
    const links = exceptionLinks(status).map(({ page, text }): Span => {
      return { page: `${status.mirror}/${page}`, text };
    });
    const stopped = status.firstLoad && !status.running && stoppedWords(status.firstLoad);
    return listed([...links, ...present<Span>(stopped, isUnserved && 'no worker serves it')]);
  }
  const { runs = 1 } = status.failedRuns[0]?.failing ?? {};
  const several = worst.code === 'run_failed' && runs > 1 ? `${runs} runs failed` : undefined;
  const words = worst.code === 'paused' ? 'paused' : (several ?? causes[worst.code]?.[1]);
  if (words === undefined) return worst.text;
  const since = worst.since === null ? '' : `, for ${ago(worst.since, status.at)}`;
  const reason = shortReason(status, worst.code);
  const why = reason === undefined ? '' : `: ${reason}`;
  return `${words}${since}${why}${others.length === 0 ? '' : ` (and ${others.length} more)`}`;
}

/** Returns a section for each cause that several mirrors share, such as a Redis that is away. */
function incidents(mirrors: readonly ShownMirror[]): Section[] {
  const found = mirrors.flatMap(({ config, attention }) =>
    attention.map((about) => ({ about, config, cause: causeOf(config, about.code) })),
  );
  return [...Map.groupBy(found, ({ cause }) => cause)].flatMap(([cause, all]): Section[] => {
    const [first, ...others] = all;
    if (cause === undefined || !first || others.length === 0) return [];
    const { code, text, fix } = first.about;
    const links = listed(all.map(({ config: { mirror } }) => ({ page: mirror, text: mirror })));
    return [
      {
        title: `One cause, ${counted(all.length, 'mirror')}: ${causes[code]?.[1] ?? code}`,
        lines: [renderProblem({ reason: text, fix }), links],
      },
    ];
  });
}

/** Names what fails alike for all mirrors that share it; undefined if it concerns one alone. */
export function causeOf(
  { redis, platform, contacts, templates, snapshot }: Config,
  code: string,
): string | undefined {
  const named: Readonly<Record<string, () => string>> = {
    redis_away: () => redis ?? '',
    platform_away: () => platform.url,
    key_refused: () => `${platform.url} ${platform.apiKey}`,
    clock_differs: () => platform.url,
    source_away: () => placeIn(contacts?.source),
    templates_away: () => placeIn(templates?.source),
    disk_full: () => String(statSync(dirname(snapshot), { throwIfNoEntry: false })?.dev),
  };
  const name = named[code];
  return name && `${code} ${name()}`;
}

function placeIn(source: { path: string } | { url: string } | undefined): string {
  if (!source) return '';
  return 'path' in source ? source.path : source.url;
}

/** What is shown of the fleets over one Redis, or over several. */
export type ShownFleet = ReturnType<typeof shownFleet>;

/** Returns what is shown of a fleet. `own`: the mirrors that are meant, if not all are. */
export function shownFleet(fleet: Fleet, own?: readonly string[]) {
  const isMeant = ({ name }: { name: string }): boolean => own?.includes(name) ?? true;
  return {
    workers: fleet.nodes.map(({ name: node, host, since, isDraining: draining }) => {
      const served = servedBy(fleet, node);
      const row = { node, host, since: instant(since), mirrors: served.length, draining };
      return { row, served };
    }),
    /** The mirrors that nobody serves. */
    withoutHome: unserved(fleet.mirrors)
      .filter(isMeant)
      .map(({ name }) => name),
  };
}

/**
 * Returns the workers, what is wrong, and the mirrors of each. `here` is the worker that shows it;
 * `unusable` are the files whose mirrors are not known. The id of a row is the worker.
 */
export function fleetSections(
  { workers, withoutHome }: ShownFleet,
  { here, unusable = [] }: { here?: string; unusable?: readonly string[] } = {},
): Section[] {
  const rows = workers.map(({ row: { node, host, since, mirrors, draining } }) => {
    const left = mirrors === 0 ? 'Drained: it can be stopped' : 'Gives its mirrors away';
    return {
      id: node,
      cells: [
        node === here ? `${node} (this one)` : node,
        host,
        since,
        withCommas(mirrors),
        draining ? left : ({ tone: 'good', text: 'Serves' } as const),
      ],
      notes: [],
    };
  });
  const columns = [names('Worker'), 'Machine', 'Since', numbers('Mirrors'), 'State'];
  const free = `Nobody serves ${counted(withoutHome.length, 'mirror')}: ${withoutHome.join(', ')}`;
  const well = `Every ${unusable.length === 0 ? '' : 'other '}mirror is served.`;
  return [
    {
      table: { columns, rows, leavesOut: ['Since', 'Machine'] },
      none: 'No worker of a folder is alive.',
    },
    {
      lines: present(
        withoutHome.length === 0 ? well : ({ tone: 'bad', text: free } as const),
        unusable.length > 0 && `Not known, see above: ${unusable.join(', ')}`,
      ),
    },
    ...workers.map(({ row, served }): Section => ({
      title: `Mirrors of ${row.node}`,
      isFolded: true,
      isList: true,
      lines: served.map((name) => [{ page: name, text: name }]),
    })),
  ];
}
