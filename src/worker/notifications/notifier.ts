/**
 * Reports the troubles of a mirror to every sink of the configuration. It works in parallel with
 * runs: no run waits for it or fails because of it. The process that holds the mirror sends, and
 * each sink has its own memory in the snapshot. Each attempt begins anew:
 *
 *   1  read the status and what the receiver was told; nothing is due: done
 *   2  store what is tried; it cannot be stored: send nothing
 *   3  send one message, and store what was told
 *
 * A process that ends between 2 and 3 leaves a message that the next one sends once more. What only
 * this process notices, such as a snapshot that cannot be read, has a memory in this process. It
 * needs neither the snapshot nor Redis, and neither does the timer.
 *
 * What one receiver was told is kept, and what it could not be told, so that a receiver that was
 * away hears of a problem that has ended meanwhile:
 *
 *   an attempt begins                 the problem is kept, with the time of the first attempt
 *   it was sent                       dropped
 *   it ends before it could be sent   reported as: from … to …, solved since; then dropped
 *   there are more than twenty        the oldest are dropped, and so is what is older than a week
 */
import {
  type Item,
  itemOf,
  type Message,
  messageHead,
  type Outcome,
  pageOf,
  type Sink,
  sinksOf,
} from './sinks.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import { Busy, isExpected, renderProblem } from '../../domain/errors.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import type { Config } from '../../config/config.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { withConfig } from '../../compose/command-options.ts';
import type { OutageRecord } from '../../store/health-file.ts';
import { type Attention, isPresent, unreadable, worstFirst } from '../../views/status/attention.ts';
import { readCurrentStatus } from '../../views/status/status-document.ts';
import {
  type Found,
  foundIn,
  type Notice,
  noticesOf,
  after,
  type NoticeLines,
  subjectsIn,
} from '../../views/status/trouble-notice.ts';
import type { Log } from '../../app/run/run-log.ts';
import { causeOf } from '../../views/status/mirrors.ts';
import { existsSync } from 'node:fs';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../store/open-snapshot.ts';
import { instant } from '../../compose/output/format-values.ts';

/** The parts of a notifier in addition to the configuration. */
export interface NotifierOptions {
  shell: Shell;
  noticed: Log['noticed'];
  clock: Clock;
  random: Random;
  /** Returns what fails as this process notices it; undefined in a process that is no worker. */
  faults?: (() => readonly Attention[]) | undefined;
  outages?: OutageRecord | undefined;
  causes?: SharedCauses | undefined;
  /** Returns who reports the state. While unknown, this process reports its own faults. */
  reporter?(): 'this' | 'another' | 'unknown';
}

/** The state of a mirror, or what of it this process alone notices. */
interface Seen {
  found: readonly Found[];
  run: string | null;
  /** Whether such a run is in progress, so that the outcome of the last one is not visible. */
  isRunning: boolean;
}

const eachMs = 60_000;
/** How often it looks after an outage has begun or ended, and how many times more. */
const soonMs = 10_000;
const soonTimes = 3;

type When = 'run' | 'timer';

export type Notifier = NonNullable<ReturnType<typeof createNotifier>>;

/** Creates the notifier, or returns undefined if the configuration names no sink. */
export function createNotifier(config: Config, options: NotifierOptions) {
  const { clock, outages, causes, reporter = () => 'this' } = options;
  const sinks = sinksOf(config, clock);
  if (sinks.length === 0) return undefined;
  const look = createLook(config, options);
  const own = (): Seen => ({ found: look.faults(), run: null, isRunning: false });
  const sendersFor = (file: string | undefined, lookAgain: () => Seen | undefined) =>
    sinks.map((sink) => {
      const memory = createToldMemory(sink.name, file);
      return createSender({ ...options, config, sink, memory, look: lookAgain });
    });
  const standing = sendersFor(config.snapshot, look.status);
  const faulty = sendersFor(undefined, own);
  const tell = (when: When): void => {
    const who = reporter();
    // The status must be read now, because once the next run has started, the outcome of the last
    // one is no longer visible.
    const seen = who === 'this' ? look.status() : undefined;
    if (seen) for (const sender of standing) sender.tell(seen, when);
    const faults = who === 'another' ? { ...own(), found: [] } : own();
    const all = [...(seen?.found ?? []), ...faults.found].map(({ code }) => causeOf(config, code));
    causes?.found(
      config.mirror,
      all.filter((cause) => cause !== undefined),
    );
    for (const sender of faulty) sender.tell(faults, when);
  };
  const over = new AbortController();
  const tellEach = async (ms: number, times: number): Promise<void> => {
    for (let nth = 0; nth < times; nth += 1) {
      await clock.sleep(ms, over.signal);
      tell('timer');
    }
  };
  let isSoon = false;
  const tellSoon = async (): Promise<void> => {
    if (isSoon || over.signal.aborted) return;
    isSoon = true;
    tell('timer');
    await tellEach(soonMs, soonTimes);
    isSoon = false;
  };
  outages?.listen(() => void tellSoon().catch(() => undefined));
  return {
    /** Starts sending what is new; call it after a run. Never throws. */
    ran: (): void => tell('run'),
    /** From now on does the same each minute, because runs may not come any more. */
    watch: (): void => void tellEach(eachMs, Infinity).catch(() => undefined),
    /** Waits for deliveries in progress. Anything not sent by then is left to the next worker. */
    async close(): Promise<void> {
      over.abort();
      await Promise.all([...standing, ...faulty].map(async ({ ended }) => ended()));
      causes?.leave(config.mirror);
      await Promise.all(sinks.map(async (sink) => sink.close()));
    },
  };
}

/** Told from the memory of this process: the snapshot may be away, or what it has of them old. */
const ownCodes: ReadonlySet<string> = new Set([
  'disk_full',
  'redis_away',
  'redis_evicts',
  'snapshot_unreadable',
]);

/** Reads the state of the mirror, and remembers why that failed the last time. */
function createLook(config: Config, { noticed, faults }: NotifierOptions) {
  let said: string | undefined;
  let fault: Attention | undefined;
  return {
    /** Returns undefined if the snapshot cannot be read, which is printed once. */
    status(): Seen | undefined {
      try {
        const status = readCurrentStatus(config);
        const { full, fast } = status.lastRuns;
        const isFast = fast && fast.startedAt > (full?.startedAt ?? '');
        const isRunning = [full, fast].some((one) => one?.status === 'running');
        const run = (isFast ? fast : full)?.run ?? null;
        [said, fault] = [undefined, undefined];
        // A worker that has just begun finds the last sign of life of another one.
        const found = foundIn(status).filter(
          ({ code }) => !ownCodes.has(code) && !(faults && code === 'worker_dead'),
        );
        return { run, isRunning, found };
      } catch (error) {
        fault = unreadable(error);
        const why = sayWhy(error);
        if (why !== said) noticed(undefined, why);
        said = why;
        return undefined;
      }
    },
    faults: () =>
      worstFirst([...(faults?.() ?? []), ...(fault ? [fault] : [])]).filter(({ code }) =>
        ownCodes.has(code),
      ),
  };
}

/** What a sender works with. `look` reads what it reports anew; undefined if that fails. */
interface Line extends NotifierOptions {
  config: Config;
  sink: Sink;
  memory: ToldMemory;
  look(): Seen | undefined;
}

interface Draft {
  notices: [Notice, ...Notice[]];
  message: Message;
  /** Whether another mirror has told it, so that nothing is sent. */
  isTold: boolean;
}

/** A longer delay, or time that a receiver names, ends the attempts until a run or the timer. */
const longestWaitMs = 60_000;

/**
 * Sends to one sink, one delivery after the other. A newer status replaces one that waits. Stops at
 * the first message that could not be sent: a run begins the attempts anew, and the timer makes the
 * next one when it is due.
 */
function createSender(line: Line) {
  const { config, sink, memory, shell, noticed, clock, random, causes } = line;
  const schedule = retrySchedules.notification;
  let next: Seen | undefined;
  /** Whether a run has ended since the last delivery began. */
  let hasRun = false;
  let underWay: Promise<void> | undefined;
  let failed = { times: 0, retryAt: 0 };
  let waitUntil = 0;
  let refusal = '';

  const store = (tried: Parameters<ToldMemory['store']>[0]): string | undefined => {
    try {
      memory.store(tried);
      return undefined;
    } catch (error) {
      return renderProblem(explain(error).problem);
    }
  };

  /** Returns the first message that is due. The status is read again, as it may be old by now. */
  function findDue(seen: Seen, earlier: Draft | undefined): Draft | undefined {
    const draft = draftMessage(line, seen, earlier);
    const now = draft && line.look();
    return now && !now.isRunning ? draftMessage(line, now, draft) : draft;
  }

  async function attempt({ notices, message, isTold }: Draft): Promise<Outcome> {
    const tried = (isSent: boolean) =>
      notices.map((notice) => ({ notice, at: clock.now(), isSent }));
    const unable = store(tried(false));
    if (unable !== undefined) {
      throw new Busy(`nothing is sent while it cannot be stored that it was: ${unable}`);
    }
    const outcome: Outcome = isTold ? { is: 'sent' } : await sink.deliver(message, shell.abort);
    if (outcome.is !== 'sent') return outcome;
    const lost = store(tried(true));
    const but = outcome.but ?? (lost && `it cannot be stored that this was sent: ${lost}`);
    for (const notice of isTold ? [] : notices) {
      const shared = sharedNotice(line, notice);
      if (shared) causes?.sent(config.mirror, shared);
      noticed(notice, undefined, { to: sink.name, but });
    }
    return outcome;
  }

  function planRetry(draft: Draft, outcome: Outcome): number | undefined {
    if (outcome.is === 'sent') {
      failed = { times: 0, retryAt: 0 };
      return 0;
    }
    const times = failed.times + 1;
    const asked = outcome.is === 'later' ? (outcome.waitMs ?? 0) : 0;
    const waitMs = Math.max(retryDelayMs(schedule, times, random), asked);
    failed = { times, retryAt: clock.now() + waitMs };
    if (outcome.is === 'later' && waitMs <= longestWaitMs) return waitMs;
    waitUntil = clock.now() + asked;
    const why = outcome.is === 'refused' ? renderProblem(outcome) : outcome.reason;
    const isNews = outcome.is === 'later' || why !== refusal;
    refusal = outcome.is === 'refused' ? why : '';
    if (isNews && !shell.stop.aborted) noticed(draft.notices[0], why, { to: sink.name });
    return undefined;
  }

  async function deliver(newest: () => Seen): Promise<void> {
    let draft: Draft | undefined;
    try {
      while (!shell.stop.aborted && clock.now() >= waitUntil) {
        draft = findDue(newest(), draft);
        if (!draft) return void store([]);
        const outcome = await attempt(draft);
        const waitMs = planRetry(draft, outcome);
        if (waitMs === undefined) return;
        if (outcome.is === 'sent') draft = undefined;
        else await clock.sleep(waitMs, shell.stop);
      }
    } catch (error) {
      if (!shell.stop.aborted) noticed(draft?.notices[0], sayWhy(error), { to: sink.name });
    }
  }

  async function deliverAll(): Promise<void> {
    while (next && !shell.stop.aborted && (hasRun || clock.now() >= failed.retryAt)) {
      const last = next;
      next = undefined;
      hasRun = false;
      await deliver(() => next ?? last);
    }
    underWay = undefined;
  }

  return {
    tell(seen: Seen, when: When): void {
      // During a run, the outcome of the last one is not visible, but may be under way.
      const isLess = underWay !== undefined && seen.isRunning;
      if (when === 'timer' && (isLess || clock.now() < failed.retryAt)) return;
      if (when === 'run' && !underWay) failed = { times: 0, retryAt: 0 };
      next = seen;
      hasRun ||= when === 'run';
      underWay ??= deliverAll();
    },
    async ended(): Promise<void> {
      await underWay;
    },
  };
}

/** Returns the next message: the earlier one if it reports the same, as receivers know its id. */
function draftMessage(line: Line, seen: Seen, earlier: Draft | undefined): Draft | undefined {
  const { config, sink, memory, clock } = line;
  const [told, now] = [memory.read(), clock.now()];
  const due = [...noticesOf(told.lines, seen.found, now), ...solvedNotices(told, seen.found, now)];
  const wanted = due.filter(({ type, trouble, subject }) =>
    type === 'mirror.recovered' ? !seen.isRunning || isPresent(subject) : sink.wants(trouble),
  );
  // A cause that mirrors of this process may share is told by one of them; [] if it is not shared.
  const decided = wanted.map((notice) => {
    const shared = sharedNotice(line, notice);
    return { notice, is: (shared && line.causes?.decide(config.mirror, shared)) ?? [] };
  });
  const alone = decided.filter(({ is }) => is !== 'told' && is !== 'wait' && is.length < 2);
  const one = decided.find(({ is }) => is === 'told' || (is !== 'wait' && is.length > 1));
  const [first, ...more] = one ? [one.notice] : alone.map(({ notice }) => notice);
  if (!first) return undefined;
  const notices: Draft['notices'] = sink.isGrouped ? [first, ...more] : [first];
  if (earlier && contentOf(earlier.notices) === contentOf(notices)) return earlier;
  const item = (notice: Notice): Item => {
    const fix = sink.isGrouped ? withConfig(notice.fix, config.file) : notice.fix;
    return itemOf({ ...notice, fix });
  };
  const head = messageHead(config, line);
  const page = pageOf(notices.map(item));
  const linkTo = (to: string): string | undefined => head.link && `${head.link}/${to}`;
  const linked = (notice: Notice): Item => {
    const one = item(notice);
    const link = page === '' && one.page !== undefined ? linkTo(one.page) : undefined;
    return link === undefined ? one : { ...one, link };
  };
  const items: Message['items'] = [linked(first), ...notices.slice(1).map(linked)];
  const mirrors = one && typeof one.is !== 'string' ? { mirrors: one.is } : {};
  const link = page === '' ? head.link : linkTo(page);
  const message = { ...head, link, run: seen.run, items, ...mirrors };
  return { notices, message, isTold: one?.is === 'told' };
}

function contentOf(notices: readonly Notice[]): string {
  return JSON.stringify(notices.map(({ type, subject, withheld }) => [type, subject, withheld]));
}

function sharedNotice({ config, sink: { receiver } }: Line, { subject, type }: Notice) {
  const cause = causeOf(config, subject);
  return cause === undefined ? cause : { cause, receiver, isOver: type === 'mirror.recovered' };
}

function sayWhy(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return isExpected(error) ? why : `a bug: ${why}`;
}

/** What a receiver was told, and the problems that it could not be told yet. */
export interface Told {
  lines: NoticeLines;
  unsent: {
    trouble: Notice['trouble'];
    subject: string;
    why: string;
    /** When it was first tried and tried last, and when it was first found to be over. */
    from: number;
    triedAt: number;
    until?: number | undefined;
  }[];
}

interface Tried {
  notice: Notice;
  at: number;
  isSent: boolean;
}

export type ToldMemory = ReturnType<typeof createToldMemory>;

/** Creates the memory of a receiver: in the snapshot at `file`, without one in this process. */
export function createToldMemory(name: string, file: string | undefined) {
  const fact = storedFact<Told>(`notices.${name}`, 'the reported troubles');
  let own: Told = { lines: {}, unsent: [] };
  let unstored: Tried[] = [];
  const readFrom = (meta?: Meta): Told =>
    unstored.reduce(afterAttempt, (meta && fact.read(meta)) ?? own);
  return {
    read(): Told {
      const snapshot = file === undefined ? undefined : lookInto(file);
      try {
        return readFrom(snapshot?.meta);
      } finally {
        snapshot?.close();
      }
    },
    /** Stores attempts, or throws, and stores them with the next call. */
    store(tried: readonly Tried[]): void {
      unstored.push(...tried);
      if (unstored.length === 0) return;
      if (file === undefined || !existsSync(file)) own = readFrom();
      else {
        // The connection that was opened at the beginning may be closed.
        const { meta, transaction, close } = openSnapshot(file);
        try {
          transaction(() => fact.write(meta, readFrom(meta)));
        } finally {
          close();
        }
      }
      unstored = [];
    },
  };
}

const most = 20;
const keptMs = 7 * 86_400_000;

/** Returns the state after an attempt, or at the beginning of one, which counts as not sent. */
export function afterAttempt({ lines, unsent }: Told, { notice, at, isSent }: Tried): Told {
  const { trouble, subject, type, reason: why, solved } = notice;
  const before = unsent.find((one) => one.trouble === trouble && one.subject === subject);
  const others = unsent.filter((one) => one !== before && at - one.from <= keptMs);
  if (isSent) return { lines: after(lines, notice, at), unsent: others };
  if (type === 'mirror.recovered') {
    const until = before?.until ?? solved?.until;
    return { lines, unsent: others.concat(before ? { ...before, triedAt: at, until } : []) };
  }
  const from = before?.from ?? at;
  return { lines, unsent: [...others, { trouble, subject, why, from, triedAt: at }].slice(-most) };
}

/** Returns the notices about what has ended before it could be sent. */
export function solvedNotices(
  { lines, unsent }: Told,
  found: readonly Found[],
  now: number,
): Notice[] {
  const standing = subjectsIn(found);
  return unsent.flatMap(({ trouble, subject, why, from, until = now }): Notice[] => {
    // What was told before it could not be told again has a notice of its own.
    const isTold = lines[trouble] !== undefined && subject in lines[trouble];
    if (isTold || standing.has(`${trouble} ${subject}`) || now - from > keptMs) return [];
    const reason = `from ${instant(from)} to ${instant(until)}, solved since: ${why}`;
    const about = { trouble, subject, reason, fix: '' };
    return [{ type: 'mirror.recovered', ...about, solved: { until } }];
  });
}

/** How long the mirrors of a process have to find the same cause, in milliseconds. */
const gatherMs = 10_000;
/** How long the first mirror has to tell it, and an end that was told counts for the others. */
const turnMs = 300_000;

interface Standing {
  /** Since when each mirror has found the cause, and all that had it since it began. */
  since: Map<string, number>;
  had: Set<string>;
}

interface Tellers {
  mirrors: Set<string>;
  since: number;
  overAt?: number;
  /** What was told: the cause, or its end as well. */
  told?: 'cause' | 'end';
}

interface SharedNotice {
  cause: string;
  receiver: string;
  isOver: boolean;
}

export type SharedCauses = ReturnType<typeof createSharedCauses>;

/**
 * Makes one message of a cause that several mirrors of a process have, such as a Redis or a
 * platform that is away. Of the mirrors that have the same receiver, the first one tells it of the
 * cause and of its end, for all of them, and tries again where that fails:
 *
 *   a mirror has to tell      while                       result
 *   a cause, or its end       another one has told it     counts as told
 *   a cause                   it is seconds old           waits, so that the others find it, too
 *   the end                   another mirror still has it waits
 *   a cause, or its end       the first one still can     waits for some minutes
 *   a cause                   it is older                 one message for all that have it
 *   the end                   no mirror has it            one message for all that had it
 *
 * The first one may be unable to tell it, because its snapshot cannot be written, say, or the cause
 * has ended for it alone: so nothing counts as told that was not sent.
 */
export function createSharedCauses(monotonic: () => number) {
  const standing = new Map<string, Standing>();
  const tellers = new Map<string, Tellers>();
  return {
    found(mirror: string, causes: readonly string[]): void {
      for (const [cause, { since }] of standing) if (!causes.includes(cause)) since.delete(mirror);
      for (const cause of causes) {
        const known = standing.get(cause);
        const is: Standing =
          known && known.since.size > 0 ? known : { since: new Map(), had: new Set() };
        standing.set(cause, is);
        if (!is.since.has(mirror)) is.since.set(mirror, monotonic());
        is.had.add(mirror);
      }
    },
    /** The mirror is served by another process from now on. */
    leave(mirror: string): void {
      for (const { since } of standing.values()) since.delete(mirror);
      for (const { mirrors } of tellers.values()) mirrors.delete(mirror);
    },
    /** Returns the mirrors that a message of this mirror has to name, or why there is none. */
    decide(
      mirror: string,
      { cause, receiver, isOver }: SharedNotice,
    ): readonly string[] | 'told' | 'wait' {
      const name = nameOf(cause, receiver);
      const now = monotonic();
      const known = tellers.get(name);
      const overAt = known?.overAt ?? Infinity;
      const isPast = isOver ? now - overAt >= turnMs : overAt < Infinity;
      const tell: Tellers = known && !isPast ? known : { mirrors: new Set(), since: now };
      tellers.set(name, tell);
      tell.mirrors.add(mirror);
      const [first] = tell.mirrors;
      const { since, had }: Standing = standing.get(cause) ?? { since: new Map(), had: new Set() };
      const isEarly = now - Math.min(...since.values()) < gatherMs;
      if (isOver ? since.size > 0 : isEarly) return 'wait';
      if (isOver) tell.overAt ??= now;
      if (first !== mirror && tell.told === (isOver ? 'end' : 'cause')) return 'told';
      const next = [...tell.mirrors].find((one) => isOver || since.has(one));
      if (next !== mirror && (isOver || now - tell.since < turnMs)) return 'wait';
      return [...new Set([mirror, ...(isOver && isPast ? [] : had)])].toSorted();
    },
    /** Notes that the mirror has told it, which counts for the others. */
    sent(mirror: string, { isOver, ...about }: SharedNotice): void {
      const tell = tellers.get(nameOf(about.cause, about.receiver));
      if (!tell) return;
      tell.mirrors = new Set([mirror, ...tell.mirrors]);
      tell.told = isOver ? 'end' : 'cause';
      if (isOver) tell.overAt = monotonic();
    },
  };
}

function nameOf(cause: string, receiver: string): string {
  return `${cause}\n${receiver}`;
}
