/** The command's part of a move: asks the workers for it, and follows it to its end. */
import { Busy, Invalid, Unavailable } from '../../domain/errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import { size } from '../../compose/output/format-values.ts';
import {
  type Fleet,
  type FleetNode,
  mirrorsWithoutDisk,
  missingDiskWords,
} from '../../compose/placement/fleet-store.ts';
import { beginMove, type MoveNews, type MoveStore } from '../../compose/placement/move-store.ts';
import type { Quick } from '../../compose/queues/redis-connections.ts';

export interface MovePlan {
  from: string;
  to: string;
  /** The disk of the source, as Redis has it. */
  known: string;
  disk: string;
}

/**
 * Returns how the mirror comes to the node; undefined if it is there. Throws Invalid if that is
 * impossible, and Busy if it is being moved.
 */
export function planMove(fleet: Fleet, mirror: string, target: FleetNode): MovePlan | undefined {
  const found = fleet.mirrors.find(({ name }) => name === mirror);
  const there = diskAt(target, mirror);
  if (fleet.moves.has(mirror)) {
    throw new Busy(`${mirror} is being moved already`, { fix: 'look at `fleet status`' });
  }
  if (!found || found.isElsewhere) {
    throw new Invalid(`${mirror} is served by a worker that was started with -c`, {
      fix: 'move its files by hand (docs/operations.md)',
    });
  }
  if (found.home === target.name) return undefined;
  if (there === undefined) {
    throw new Invalid(`${target.name} has no file of ${mirror}, or cannot use its folder`, {
      fix: 'put the configuration of the mirror into its folder',
    });
  }
  if (target.isDraining) {
    throw new Invalid(`${target.name} is draining, and takes no mirror`, {
      fix: 'name another worker, or `fleet drain NODE --undo`',
    });
  }
  const { disk, diskHost = '' } = found;
  if (disk === undefined) {
    throw new Invalid(`no worker has served ${mirror} yet, so there is nothing to move`, {
      fix: 'wait until a worker serves it',
    });
  }
  if (disk === there) {
    throw new Invalid(`${target.name} has the disk of ${mirror}, so there is nothing to copy`, {
      fix: 'drain the worker that has it: the placement moves it',
    });
  }
  const has = fleet.nodes.filter((node) => diskAt(node, mirror) === disk);
  const from = has.find(({ name }) => name === found.home) ?? has[0];
  if (!from) {
    const [line = ''] = missingDiskWords(mirrorsWithoutDisk({ ...fleet, mirrors: [found] }));
    throw new Invalid(line);
  }
  return {
    from: from.name,
    to: target.name,
    known: `${disk}@${diskHost}`,
    disk: `${there}@${target.host}`,
  };
}

function diskAt({ disks }: FleetNode, mirror: string): string | undefined {
  const found = Object.entries(disks).find(([, { begun, bare }]) => {
    return begun.includes(mirror) || bare.includes(mirror);
  });
  return found?.[0] === '' ? undefined : found?.[0];
}

/** Asks for the move. Throws Busy if the fleet has changed meanwhile. */
export async function askToMove(
  quick: Quick,
  { mirror, id, plan }: { mirror: string; id: string; plan: MovePlan },
): Promise<void> {
  const { from, to, disk, known } = plan;
  const move = { id, from, to, disk, state: 'asked', proof: '' } as const;
  const told = await beginMove(quick, { mirror, move, known });
  if (told === 'begun') return;
  throw new Busy(`${mirror}: the fleet has changed meanwhile`, { fix: 'run this again' });
}

const lookMs = 250;
/** How long the source has to rename its files. */
const keptMs = 10_000;
/** How long Redis may be away. */
const awayMs = 60_000;

interface Moved extends Extract<MoveNews, { is: 'moved' }> {
  /** The names under which the source keeps its old files; undefined if it has not said so. */
  kept: string[] | undefined;
}

/**
 * Waits until the move is over. `tell` receives what is sent. Throws Invalid if a worker has
 * refused it, Unavailable if it has failed, and the reason of `stop`; then the move goes on.
 */
export async function followMove(
  store: MoveStore,
  { clock, stop, tell }: { clock: Clock; stop: AbortSignal; tell(news: MoveNews): void },
): Promise<Moved> {
  let answeredAt = clock.monotonic();
  let news: MoveNews | undefined;
  for (let isGoing = true; isGoing;) {
    const found = await store.look().catch((error: unknown) => {
      if (clock.monotonic() - answeredAt > awayMs) throw error;
    });
    if (found) answeredAt = clock.monotonic();
    if (found?.news) tell(found.news);
    if (found) ({ news, isGoing } = found);
    if (isGoing) await clock.sleep(lookMs, stop);
  }
  if (news?.is === 'failed') {
    const { reason, fix, isRefused } = news;
    throw isRefused ? new Invalid(reason, { fix }) : new Unavailable(reason, { fix, acted: 'no' });
  }
  if (news?.is !== 'moved') {
    throw new Unavailable('Redis was emptied meanwhile, and has lost the move', {
      fix: 'look at `fleet status`, and move the mirror again',
      acted: 'maybe',
    });
  }
  const until = clock.monotonic() + keptMs;
  let kept: string[] | undefined;
  while (!kept && clock.monotonic() < until) {
    kept = await store.kept().catch(() => undefined);
    if (!kept) await clock.sleep(lookMs, stop);
  }
  return { ...news, kept };
}

/** Returns a progress line. */
export function movingWords(mirror: string, news: MoveNews): string {
  return news.is === 'going'
    ? `${mirror}: ${size(news.sent)} of ${size(news.total)} sent`
    : `${mirror}: moved`;
}

interface MovedDocument {
  mirror: string;
  from: string;
  to: string;
  people: number;
  entries: number;
  files: Moved['files'];
  kept: readonly string[] | null;
  ms: number;
}

export function movedWords(document: MovedDocument): string[] {
  const { mirror, from, to, people, entries, files, kept, ms } = document;
  const [first] = kept ?? [];
  return [
    `${mirror} is on ${to}: ${counted(people, 'person', 'people')} and ` +
      `${counted(entries, 'entry', 'entries')} of the do-not-contact list, as on ${from}, ` +
      `in ${(ms / 1_000).toFixed(1)} s`,
    ...files.map(({ name, bytes, sha256 }) => {
      return `${name}: ${size(bytes)}, sha256 ${sha256.slice(0, 16)}`;
    }),
    first === undefined
      ? `${from} renames its files as soon as it can.`
      : `${from} keeps the old files: ${first}, and those beside it. Delete them when all is well.`,
  ];
}
