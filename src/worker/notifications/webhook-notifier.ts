/**
 * Tells somebody else's server what is wrong with a mirror, as Standard Webhooks has it. Beside the
 * runs: none waits for it, and none fails for it.
 *
 *   a notice was told         remembered in the snapshot, and told no more, also after a restart
 *   it could not be told      tried a few times, and again after the next run
 *   it is over by then        nothing is told
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

export interface Notifier {
  /** A run has ended: whatever is new is told in a moment. Never throws. */
  ran(): void;
  /** Waits for what is under way; what is not told by then is told by the next worker. */
  close(): Promise<void>;
}

export interface NotifierOptions {
  shell: Pick<Shell, 'stop' | 'abort'>;
  log: Pick<Log, 'noticed'>;
  clock: Clock;
  random: Random;
}

const timeoutMs = 5_000;
/** Between one try and the next. */
const delaysMs = [1_000, 5_000, 25_000];
const name = 'notices';

/** Undefined where nobody is to be told. */
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
      // At once: while the next one is under way nobody knows how it ends.
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

interface Seen {
  attention: Attention[];
  /** The newest one about everybody. */
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

/** What could not be told ends it: the next run brings it up again. */
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

/** Tried a few times under one id; throws what the last try came to. */
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
  for (const delayMs of [...delaysMs, undefined]) {
    try {
      return await post(delivery, id, body);
    } catch (error) {
      if (delayMs === undefined || shell.stop.aborted) throw error;
      await clock.sleep(delayMs * (0.5 + random()), shell.stop);
    }
  }
}

/** Each try has a time and a signature of its own: an old one is refused. */
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

/** By a connection of its own: the one that was open when it began may be closed by now. */
function keepTold(file: string, now: NoticeLines): void {
  if (!existsSync(file)) return;
  const { meta, transaction, close } = openSnapshot(file);
  try {
    transaction(() => meta.set(name, JSON.stringify(now)));
  } finally {
    close();
  }
}
