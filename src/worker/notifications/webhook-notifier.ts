/**
 * Sends what is wrong with a mirror to a webhook, in the form of Standard Webhooks. It works beside
 * the runs: none waits for it, and none fails because of it.
 *
 *   a notice was sent          remembered in the snapshot and not sent again, even after a restart
 *   it could not be sent       tried a few times, and again after the next run
 *   the trouble is over        not sent
 */
import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { createSend } from '../../http/send-request.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import { isExpected, Unavailable } from '../../domain/errors.ts';
import type { Send } from '../../domain/exchange.ts';
import { sign } from '../../server/webhook-signature.ts';
import { lookInto, openSnapshot } from '../../snapshot/snapshot.ts';
import { type Attention, attentionOf } from '../../cli/status/attention-list.ts';
import type { Log } from '../../cli/run/run-log.ts';
import {
  after,
  type Notice,
  noticesOf,
  told,
  type NoticeLines,
} from '../../cli/status/trouble-notice.ts';
import type { Shell } from '../../cli/compose/process-shell.ts';
import { readCurrentStatus } from '../../cli/status/current-status.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** Sends notices about one mirror. */
export interface Notifier {
  /** Call after a run: what is new is sent in a moment. Never throws. */
  ran(): void;
  /** Waits for what is under way. The next worker sends what is not sent by then. */
  close(): Promise<void>;
}

/** The parts of a notifier besides the configuration. */
export interface NotifierOptions {
  shell: Pick<Shell, 'stop' | 'abort'>;
  log: Pick<Log, 'noticed'>;
  clock: Clock;
  random: Random;
}

const timeoutMs = 5_000;
const name = 'notices';

/** Creates the notifier; undefined if the configuration names no webhook. */
export function createNotifier(config: Config, options: NotifierOptions): Notifier | undefined {
  const { notices } = config;
  if (!notices) return undefined;
  const { origin } = new URL(notices.url);
  const { send, close } = createSend({ url: origin, timeoutMs, userAgent: 'crm-mirror' });
  const delivery = { ...options, config, target: notices, send };
  let seen: Seen | undefined;
  let underWay: Promise<void> | undefined;
  const tellAll = async (): Promise<void> => {
    while (seen && !options.shell.stop.aborted) {
      const last = seen;
      seen = undefined;
      await tell(delivery, last);
    }
    underWay = undefined;
  };
  return {
    ran() {
      // Now, not later: once the next run is under way nobody knows how it ends.
      seen = lookNow(delivery);
      underWay ??= tellAll();
    },
    async close() {
      await underWay;
      await close();
    },
  };
}

interface Notification extends NotifierOptions {
  config: Config;
  target: NonNullable<Config['notices']>;
  send: Send;
}

/** The state of a mirror when a run had ended. */
interface Seen {
  attention: Attention[];
  /** The id of the newest run about everybody. */
  run: string | null;
}

function lookNow({ config, log }: Notification): Seen | undefined {
  try {
    const standing = readCurrentStatus(config);
    const { full, fast } = standing.lastRuns;
    const isFast = fast && fast.startedAt > (full?.startedAt ?? '');
    return { attention: attentionOf(standing), run: (isFast ? fast : full)?.run ?? null };
  } catch (error) {
    log.noticed(undefined, sayWhy(error));
    return undefined;
  }
}

/** Sends each notice. Stops at the first failure: the next run brings up what was not sent. */
async function tell(delivery: Notification, { attention, run }: Seen): Promise<void> {
  const { config, shell, log, clock } = delivery;
  let notice: Notice | undefined;
  try {
    for (notice of noticesOf(toldIn(config.snapshot), attention, clock.now())) {
      await deliver(delivery, notice, run);
      keepTold(config.snapshot, after(toldIn(config.snapshot), notice, clock.now()));
      log.noticed(notice);
    }
  } catch (error) {
    if (!shell.stop.aborted) log.noticed(notice, sayWhy(error));
  }
}

function sayWhy(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return isExpected(error) ? why : `a bug: ${why}`;
}

/** Tries a few times under one id, and throws the error of the last try. */
async function deliver(
  delivery: Notification,
  { type, reason, fix }: Notice,
  run: string | null,
): Promise<void> {
  const { config, shell, clock, random } = delivery;
  const at = new Date(clock.now());
  const data = { mirror: config.mirror, run, reason, fix };
  const body = JSON.stringify({ type, timestamp: at.toISOString(), data });
  const id = `msg_${at.getTime().toString(36)}${random().toString(36).slice(2, 12)}`;
  const schedule = retrySchedules.notification;
  for (let tries = 1; ; tries += 1) {
    try {
      return await post(delivery, id, body);
    } catch (error) {
      if (tries >= schedule.tries || shell.stop.aborted) throw error;
      await clock.sleep(retryDelayMs(schedule, tries, random), shell.stop);
    }
  }
}

/**
 * Sends one try with a time and a signature of its own, because the receiver refuses an old one.
 * Throws Unavailable for an answer other than 2xx.
 */
async function post(
  { send, target, clock, shell }: Notification,
  id: string,
  body: string,
): Promise<void> {
  const { pathname, search } = new URL(target.url);
  const signed = sign(target.secret, id, { body, at: clock.now() });
  const headers = { 'content-type': 'application/json', ...signed };
  const request = { method: 'POST', path: pathname + search, headers, body } as const;
  const { status } = await send(request, shell.abort);
  if (status >= 200 && status <= 299) return;
  throw new Unavailable(`notices.url answers ${status}`, { acted: 'maybe', status });
}

function toldIn(file: string): NoticeLines {
  const snapshot = lookInto(file);
  const text = snapshot?.meta.get(name);
  snapshot?.close();
  return text === undefined ? {} : told.parse(JSON.parse(text));
}

/**
 * Writes what was sent by a connection of its own: the one that was open at the beginning may be
 * closed.
 */
function keepTold(file: string, now: NoticeLines): void {
  if (!existsSync(file)) return;
  const { meta, transaction, close } = openSnapshot(file);
  try {
    transaction(() => meta.set(name, JSON.stringify(now)));
  } finally {
    close();
  }
}
