/**
 * Tells which parts of a mirror fail now, and whether a worker serves it, from what its process
 * records beside the snapshot. All functions but `healthOf` are pure.
 */
import type { Config } from '../../config/config.ts';
import { clockFix } from '../../engine/context/clock-difference.ts';
import { readHealth, type Outage, type OutagePart, silentMs } from '../../store/health-file.ts';
import { instant } from '../../compose/output/format-values.ts';
import { ago, type Attention } from './attention.ts';

/** A part that fails now, or that failed until `endedAt`, less than half an hour ago. */
export interface ToldOutage {
  part: OutagePart;
  since: string;
  /** When it failed for the last time. */
  seenAt: string;
  endedAt: string | null;
  reason: string;
  fix: string;
}

/** The worker that serves the mirror, or served it last. */
export interface ToldWorker {
  since: string;
  seenAt: string;
  /** `silent`: it gives no sign of life. `left`: it was stopped, or has given the mirror away. */
  is: 'alive' | 'silent' | 'left';
}

/** The part of the status that this file builds. */
export interface ToldHealth {
  /** What fails now, worst first; then what has ended. */
  outages: ToldOutage[];
  /** Null if no worker has served the mirror. */
  worker: ToldWorker | null;
}

/** Reads what the process that serves the mirror has recorded. */
export function healthOf({ snapshot }: Pick<Config, 'snapshot'>, now: number): ToldHealth {
  const { worker, outages } = readHealth(snapshot);
  const isOver = (one: Outage): boolean => one.endedAt !== undefined;
  const all = [...outages.filter((one) => !isOver(one)), ...outages.filter(isOver)];
  return {
    outages: all.map(tellOutage),
    worker: worker && {
      since: instant(worker.since),
      seenAt: instant(worker.endedAt ?? worker.seenAt),
      is: worker.endedAt === undefined ? lifeOf(worker.seenAt, now) : 'left',
    },
  };
}

function lifeOf(seenAt: number, now: number): ToldWorker['is'] {
  return now - seenAt > silentMs ? 'silent' : 'alive';
}

/** Returns the document of an outage. */
export function tellOutage({ since, seenAt, endedAt, isAway: _, ...is }: Outage): ToldOutage {
  const ended = endedAt === undefined ? null : instant(endedAt);
  return { ...is, since: instant(since), seenAt: instant(seenAt), endedAt: ended };
}

const byItself = 'nothing, if it ends soon: the next run goes on from there; else ';

/** The attention code of each part, what is said of it, and what to do. */
export const outageWords: Readonly<
  Record<OutagePart, { code: Attention['code']; text: string; fix: string }>
> = {
  disk: {
    code: 'disk_full',
    text: 'the disk of the snapshot is full, so nothing can be recorded and no run begins',
    fix: 'free some space there',
  },
  redis: {
    code: 'redis_away',
    text: 'Redis is away: no run of the schedule starts, and no event is accepted',
    fix: 'start Redis again, or correct `redis` in the configuration; the worker then goes on by itself',
  },
  key: {
    code: 'key_refused',
    text: 'the platform refuses the API key, so nothing is sent, no opt-out either',
    fix: 'write a valid key where platform.apiKey is read from; the next run reads it',
  },
  platform: {
    code: 'platform_away',
    text: 'the platform does not answer, so nothing is sent, no opt-out either',
    fix: `${byItself}see whether platform.url is right and can be reached from this machine`,
  },
  contacts: {
    code: 'source_away',
    text: 'the contacts of the CRM cannot be read, so no new opt-out is known',
    fix: `${byItself}see \`crm-mirror check\``,
  },
  templates: {
    code: 'templates_away',
    text: 'the templates of the CRM cannot be read',
    fix: `${byItself}see \`crm-mirror check\``,
  },
  schedule: {
    code: 'stale',
    text: 'runs are overdue, and the worker has not been given them',
    fix:
      'see the log of the worker; if it says nothing, delete the keys crm-mirror:runs-NAME:* and ' +
      'crm-mirror:sentinel-NAME:* of this mirror in Redis: its worker stores the schedule again',
  },
  clock: {
    code: 'clock_differs',
    text: 'the clocks differ',
    fix: clockFix,
  },
};

/** Returns the lines for the outages that go on. `at` is the time of the status. */
export function outageLines(outages: readonly ToldOutage[], at: string): Attention[] {
  return outages
    .filter(({ endedAt }) => endedAt === null)
    .map(({ part, since, reason, fix }) => {
      const { code, text, fix: usual } = outageWords[part];
      return {
        code,
        text: `${text}, since ${since} (${ago(since, at)}): ${reason}`,
        fix: fix === '' ? usual : fix,
        since,
      };
    });
}

/** What shows whether a worker serves a mirror. */
interface ServedStatus extends Pick<ToldHealth, 'worker'> {
  at: string;
  lease: { held: boolean };
  snapshot: { file: string };
}

/** Returns the line for a mirror whose schedule nobody serves. */
export function workerLines({ worker, at, lease, snapshot }: ServedStatus): Attention[] {
  if (!worker || worker.is === 'alive') return [];
  const { seenAt: since, is } = worker;
  const when = `since ${since} (${ago(since, at)})`;
  if (is === 'silent' && lease.held) {
    return [
      {
        code: 'worker_dead',
        text: `the worker has given no sign of life ${when}, although a process has the mirror`,
        fix: 'look at its log and at its disk, and start it again',
        since,
      },
    ];
  }
  const how = is === 'left' ? 'it was stopped' : 'it died, or its machine did';
  return [
    {
      code: 'worker_dead',
      text: `no worker serves this mirror ${when}: ${how}; nothing of the schedule is run`,
      fix: `start the worker again; if \`sync\` runs from cron instead, delete ${snapshot.file}-health`,
      since,
    },
  ];
}

/** Returns whether runs failed because of an outage, even one that is over, at this time. */
export function isExplained(outages: readonly ToldOutage[], failedAt: string): boolean {
  const at = Date.parse(failedAt);
  return outages.some(({ part, since, endedAt }) => {
    if (part === 'schedule') return false;
    const end = endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(endedAt) + slackMs;
    return at >= Date.parse(since) - slackMs && at <= end;
  });
}

/** A run ends some time after what made it fail. */
const slackMs = 60_000;
