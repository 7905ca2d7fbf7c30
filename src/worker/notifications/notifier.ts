/**
 * Reports the troubles of a mirror to every sink of the configuration. It works in parallel with
 * runs: no run waits for it or fails because of it. Each sink has its own memory in the snapshot:
 *
 *   a notice was sent          remembered and not sent again, even after a restart
 *   sending failed             retried a few times, and again after the next run
 *   the sink refuses it        printed once, and tried again after the next run
 *   the trouble has ended      not sent
 *   another process sends it   not sent
 */
import type { Config } from '../../config/config.ts';
import { readCurrentStatus } from '../../cli/status/current-status.ts';
import { foundIn } from '../../cli/status/trouble-notice.ts';
import { deliverDue, type Line, sayWhy, type Seen } from './notice-delivery.ts';
import { sinksOf } from './sinks.ts';
import { createToldMemory } from './told-memory.ts';

/** Sends notices about one mirror. */
export interface Notifier {
  /** Starts sending what is new; call it after a run. Never throws. */
  ran(): void;
  /** Waits for deliveries in progress. Anything not sent by then is left to the next worker. */
  close(): Promise<void>;
}

/** The parts of a notifier in addition to the configuration. */
export type NotifierOptions = Pick<Line, 'shell' | 'log' | 'clock' | 'random'>;

/** Creates the notifier, or returns undefined if the configuration names no sink. */
export function createNotifier(config: Config, options: NotifierOptions): Notifier | undefined {
  const sinks = sinksOf(config, options.clock);
  if (sinks.length === 0) return undefined;
  const look = () => lookNow(config, options);
  const senders = sinks.map((sink) => {
    const memory = createToldMemory(config.snapshot, sink.name, options.clock);
    return createSender({ ...options, config, sink, memory, look, refusal: '', waitUntil: 0 });
  });
  return {
    ran() {
      // The status must be read now, because once the next run has started, the outcome of the last
      // one is no longer visible.
      const seen = look();
      if (seen) for (const sender of senders) sender.tell(seen);
    },
    async close() {
      await Promise.all(senders.map(async (sender) => sender.close()));
    },
  };
}

function lookNow(config: Config, { log }: NotifierOptions): Seen | undefined {
  try {
    const standing = readCurrentStatus(config);
    const { full, fast } = standing.lastRuns;
    const isFast = fast && fast.startedAt > (full?.startedAt ?? '');
    const isRunning = [full, fast].some((run) => run?.status === 'running');
    return { found: foundIn(standing), run: (isFast ? fast : full)?.run ?? null, isRunning };
  } catch (error) {
    log.noticed(undefined, sayWhy(error));
    return undefined;
  }
}

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
    tell(seen: Seen) {
      next = seen;
      underWay ??= tellAll();
    },
    async close() {
      await underWay;
      await line.sink.close();
    },
  };
}
