/**
 * Reports the troubles of a mirror to every sink of the configuration. It works in parallel with
 * runs: no run waits for it or fails because of it. Each sink has its own memory in the snapshot:
 *
 *   a notice was sent          remembered and not sent again, even after a restart
 *   sending failed             retried a few times, later by the timer, and after the next run
 *   the sink refuses it        printed once, and tried again in the same way
 *   the trouble has ended      sent as solved if it could not be sent before; else not sent
 *   another process sends it   not sent
 *
 * What only this process notices, such as a snapshot that cannot be read, has a memory in this
 * process. It needs neither the snapshot nor Redis, and neither does the timer.
 */
import type { Config } from '../../config/config.ts';
import type { OutageRecord } from '../../store/health-file.ts';
import { type Attention, worstFirst } from '../../views/status/attention.ts';
import { readCurrentStatus } from '../../views/status/status-document.ts';
import { unreadable } from '../../views/status/mirror-health.ts';
import { foundIn } from '../../views/status/trouble-notice.ts';
import { deliverDue, type Line, sayWhy, type Seen } from './notice-delivery.ts';
import { causeOf, type SharedCauses } from './shared-causes.ts';
import { sinksOf } from './sinks.ts';
import { createProcessMemory, createToldMemory } from './told-memory.ts';

/** The parts of a notifier in addition to the configuration. */
export interface NotifierOptions extends Pick<Line, 'shell' | 'log' | 'clock' | 'random'> {
  /** Returns what fails as this process notices it; undefined in a process that is no worker. */
  faults?: (() => readonly Attention[]) | undefined;
  outages?: Pick<OutageRecord, 'listen'> | undefined;
  causes?: SharedCauses | undefined;
  /**
   * Returns who has to report the state of the mirror: this process (the default), or another one.
   * As long as that is not known, this process reports its own faults only.
   */
  reporter?(): 'this' | 'another' | 'unknown';
}

const eachMs = 60_000;
/** How often it looks after an outage has begun or ended, and how many times. */
const soonMs = 10_000;
const soonTimes = 4;

type When = 'run' | 'timer';

export type Notifier = NonNullable<ReturnType<typeof createNotifier>>;

/** Creates the notifier, or returns undefined if the configuration names no sink. */
export function createNotifier(config: Config, options: NotifierOptions) {
  const { clock, reporter = () => 'this' } = options;
  const sinks = sinksOf(config, clock);
  if (sinks.length === 0) return undefined;
  const look = createLook(config, options);
  const own = (): Seen => ({ found: [...look.faults()], run: null, isRunning: false });
  const standing: Sender[] = [];
  const faulty: Sender[] = [];
  for (const sink of sinks) {
    const rest = { refusal: '', waitUntil: 0, failed: { times: 0, retryAt: 0 } };
    const line = { ...options, config, sink, ...rest };
    const memory = createToldMemory(config.snapshot, sink.name, clock);
    standing.push(createSender({ ...line, memory, look: look.status }));
    faulty.push(createSender({ ...line, ...rest, memory: createProcessMemory(), look: own }));
  }
  const tell = (when: When): void => {
    const who = reporter();
    // The status must be read now, because once the next run has started, the outcome of the last
    // one is no longer visible.
    const seen = who === 'this' ? look.status() : undefined;
    if (seen) for (const sender of standing) sender.tell(seen, when);
    const isOthers = who === 'another';
    const faults = isOthers ? { found: [], run: null, isRunning: false } : own();
    const all = [...(seen?.found ?? []), ...faults.found].map(({ code }) => causeOf(config, code));
    options.causes?.found(
      config.mirror,
      all.filter((cause) => cause !== undefined),
    );
    for (const sender of faulty) sender.tell(faults, when);
  };
  const over = new AbortController();
  options.outages?.listen(() => void tellSoon().catch(() => undefined));
  let isSoon = false;
  const tellSoon = async (): Promise<void> => {
    if (isSoon || over.signal.aborted) return;
    isSoon = true;
    for (let times = 0; times < soonTimes; times += 1) {
      tell('timer');
      await clock.sleep(soonMs, over.signal);
    }
    isSoon = false;
  };
  const watch = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(eachMs, over.signal);
      tell('timer');
    }
  };
  return {
    /** Starts sending what is new; call it after a run. Never throws. */
    ran: (): void => tell('run'),
    /** From now on does the same each minute, because runs may not come any more. */
    watch: (): void => void watch().catch(() => undefined),
    /** Waits for deliveries in progress. Anything not sent by then is left to the next worker. */
    async close(): Promise<void> {
      over.abort();
      await Promise.all([...standing, ...faulty].map(async ({ ended }) => ended()));
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
function createLook(config: Config, { log, faults }: NotifierOptions) {
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
        const found = foundIn(status);
        said = undefined;
        fault = undefined;
        // A worker that has just begun finds the last sign of life of another one.
        const told = faults ? found.filter(({ code }) => code !== 'worker_dead') : found;
        return { run, isRunning, found: told.filter(({ code }) => !ownCodes.has(code)) };
      } catch (error) {
        fault = unreadable(error);
        const why = sayWhy(error);
        if (why !== said) log.noticed(undefined, why);
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

type Sender = ReturnType<typeof createSender>;

/** Sends to one sink, one delivery after the other. A newer status replaces one that waits. */
function createSender(line: Line) {
  let next: Seen | undefined;
  let underWay: Promise<void> | undefined;
  const tellAll = async (): Promise<void> => {
    while (next && !line.shell.stop.aborted) {
      const last = next;
      next = undefined;
      await deliverDue(line, () => next ?? last);
    }
    underWay = undefined;
  };
  return {
    tell(seen: Seen, when: When) {
      // During a run, the outcome of the last one is not visible, but may be under way.
      const isLess = underWay !== undefined && seen.isRunning;
      if (when === 'timer' && (isLess || line.clock.now() < line.failed.retryAt)) return;
      next = seen;
      underWay ??= tellAll();
    },
    async ended() {
      await underWay;
    },
  };
}
