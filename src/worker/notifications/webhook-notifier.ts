/**
 * Sends the troubles of a mirror to a webhook, in the format of Standard Webhooks. It works in
 * parallel with runs: no run waits for it or fails because of it.
 *
 *   a notice was sent          remembered in the snapshot and not sent again, even after a restart
 *   sending failed             retried a few times, and again after the next run
 *   the trouble has ended      not sent
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
  /** Starts sending what is new; call it after a run. Never throws. */
  ran(): void;
  /** Waits for deliveries in progress. Anything not sent by then is left to the next worker. */
  close(): Promise<void>;
}

/** The parts of a notifier in addition to the configuration. */
export interface NotifierOptions {
  shell: Pick<Shell, 'stop' | 'abort'>;
  log: Pick<Log, 'noticed'>;
  clock: Clock;
  random: Random;
}

const timeoutMs = 5_000;
const name = 'notices';

/** Creates the notifier, or returns undefined if the configuration has no webhook. */
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
      // The status must be read now, because once the next run has started, the outcome of the last
      // one is no longer visible.
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

/** The state of a mirror at the end of a run. */
interface Seen {
  attention: Attention[];
  /** The id of the newest run about all people. */
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

/**
 * Sends each notice. Stops at the first failure, because the next run sends the remaining notices.
 */
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

/** Makes several attempts under one id, and throws the error of the last attempt. */
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
 * Makes one attempt with its own time and signature, because the receiver rejects an old one.
 * Throws Unavailable for a response other than 2xx.
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
 * Stores what was sent through a separate connection, because the one opened at the beginning may
 * be closed.
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
