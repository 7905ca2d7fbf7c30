/**
 * Reports the troubles of a mirror to every sink of the configuration. It works in parallel with
 * runs: no run waits for it or fails because of it. Each sink has its own memory in the snapshot:
 *
 *   a notice was sent          remembered and not sent again, even after a restart
 *   sending failed             retried a few times, and again after the next run
 *   the sink refuses it        printed once, and tried again after the next run
 *   the trouble has ended      not sent
 */
import { existsSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import { isExpected, renderProblem } from '../../domain/errors.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import { metaValue } from '../../snapshot/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../snapshot/snapshot.ts';
import { withConfig } from '../../cli/output/printed-commands.ts';
import type { Shell } from '../../cli/compose/process-shell.ts';
import type { Log } from '../../cli/run/run-log.ts';
import { type Attention, attentionOf } from '../../cli/status/attention-list.ts';
import { readCurrentStatus } from '../../cli/status/current-status.ts';
import {
  after,
  type Notice,
  type NoticeLines,
  noticesOf,
  told,
} from '../../cli/status/trouble-notice.ts';
import { itemOf } from './message-text.ts';
import type { Item, Message, Outcome, Sink } from './sink.ts';
import { sinksOf } from './sinks.ts';

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

/** The longest time that a receiver may name before the next attempt; a longer one ends them. */
const longestWaitMs = 60_000;

/** Creates the notifier, or returns undefined if the configuration names no sink. */
export function createNotifier(config: Config, options: NotifierOptions): Notifier | undefined {
  const sinks = sinksOf(config, options.clock);
  if (sinks.length === 0) return undefined;
  const lines = sinks.map((sink) => createLine(sink, { ...options, config }));
  return {
    ran() {
      // The status must be read now, because once the next run has started, the outcome of the last
      // one is no longer visible.
      const seen = lookNow(config, options);
      for (const line of lines) line.tell(seen);
    },
    async close() {
      await Promise.all(lines.map(async (line) => line.close()));
    },
  };
}

interface Surroundings extends NotifierOptions {
  config: Config;
}

/** The state of a mirror at the end of a run. */
interface Seen {
  attention: Attention[];
  /** The id of the newest run about all people. */
  run: string | null;
}

function lookNow(config: Config, { log }: NotifierOptions): Seen | undefined {
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

/** What a notifier knows of one sink. */
interface Line extends Surroundings {
  sink: Sink;
  /** The refusal that was printed last, which is printed once. */
  refusal: string;
  /** Before this time, the receiver wants no attempt. */
  waitUntil: number;
}

/** Sends to one sink, one delivery after the other. A newer status replaces one that waits. */
function createLine(sink: Sink, of: Surroundings) {
  const line: Line = { ...of, sink, refusal: '', waitUntil: 0 };
  let next: Seen | undefined;
  let underWay: Promise<void> | undefined;
  const tellAll = async (): Promise<void> => {
    while (next && !of.shell.stop.aborted) {
      const last = next;
      next = undefined;
      await tellOf(line, last);
    }
    underWay = undefined;
  };
  return {
    tell(seen: Seen | undefined) {
      next = seen;
      underWay ??= tellAll();
    },
    async close() {
      await underWay;
      await sink.close();
    },
  };
}

/**
 * Sends the notices that are due. Stops at the first failure, because the next run sends the
 * remaining ones.
 */
async function tellOf(line: Line, { attention, run }: Seen): Promise<void> {
  const { config, sink, shell, log, clock } = line;
  const { name } = sink;
  let first: Notice | undefined;
  try {
    if (clock.now() < line.waitUntil) return;
    const due = noticesOf(toldIn(config, name), attention, clock.now()).filter(
      ({ type, trouble }) => type === 'mirror.recovered' || sink.wants(trouble),
    );
    for (const notices of batchesOf(due, sink)) {
      [first] = notices;
      const outcome = await deliver(line, messageOf(line, notices, run));
      if (outcome.is !== 'sent') return sayFailure(line, first, outcome);
      line.refusal = '';
      keepTold(config, name, { notices, now: clock.now() });
      for (const notice of notices) log.noticed(notice, undefined, { to: name, but: outcome.but });
    }
  } catch (error) {
    if (!shell.stop.aborted) log.noticed(first, sayWhy(error), { to: name });
  }
}

/** Returns the notices of each message. */
function batchesOf([first, ...more]: Notice[], { isGrouped }: Sink): [Notice, ...Notice[]][] {
  if (!first) return [];
  return isGrouped ? [[first, ...more]] : [first, ...more].map((notice) => [notice]);
}

function messageOf(
  { config, sink, clock, random }: Line,
  [first, ...more]: [Notice, ...Notice[]],
  run: string | null,
): Message {
  const item = (notice: Notice): Item => {
    const fix = sink.isGrouped ? withConfig(notice.fix, config.file) : notice.fix;
    return itemOf({ ...notice, fix });
  };
  const items: Message['items'] = [item(first), ...more.map(item)];
  return { ...headOf(config, { clock, random }), run, items };
}

/** Returns the parts of a message that do not depend on what it reports. */
export function headOf(
  { mirror, server }: Pick<Config, 'mirror' | 'server'>,
  { clock, random }: Pick<NotifierOptions, 'clock' | 'random'>,
): Pick<Message, 'id' | 'at' | 'mirror' | 'link'> {
  const at = clock.now();
  const id = `msg_${at.toString(36)}${random().toString(36).slice(2, 12)}`;
  const base = server?.publicUrl;
  return { id, at, mirror, link: base === undefined ? undefined : `${base}/m/${mirror}` };
}

/** Makes several attempts with one message, and returns the outcome of the last one. */
async function deliver({ sink, shell, clock, random }: Line, message: Message): Promise<Outcome> {
  const schedule = retrySchedules.notification;
  for (let tries = 1; ; tries += 1) {
    const outcome = await sink.deliver(message, shell.abort);
    if (outcome.is !== 'later' || tries >= schedule.tries || shell.stop.aborted) return outcome;
    const waitMs = Math.max(retryDelayMs(schedule, tries, random), outcome.waitMs ?? 0);
    if (waitMs > longestWaitMs) return outcome;
    await clock.sleep(waitMs, shell.stop);
  }
}

/** Logs why a notice was not sent. A refusal that was already logged is not repeated. */
function sayFailure(
  line: Line,
  notice: Notice | undefined,
  outcome: Exclude<Outcome, { is: 'sent' }>,
): void {
  const { log, clock, sink, shell } = line;
  if (shell.stop.aborted) return;
  const why = sayOutcome(outcome);
  if (outcome.is === 'later') line.waitUntil = clock.now() + (outcome.waitMs ?? 0);
  else if (why === line.refusal) return;
  line.refusal = outcome.is === 'refused' ? why : '';
  log.noticed(notice, why, { to: sink.name });
}

/** Returns an outcome other than success as one line. */
function sayOutcome(outcome: Exclude<Outcome, { is: 'sent' }>): string {
  return outcome.is === 'refused' ? renderProblem(outcome) : outcome.reason;
}

function sayWhy(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return isExpected(error) ? why : `a bug: ${why}`;
}

/** The name in the snapshot under which is stored what a sink was told. */
function storedAs(name: string): string {
  return name === 'webhook' ? 'notices' : `notices.${name}`;
}

function toldIn({ snapshot: file }: Config, name: string): NoticeLines {
  const snapshot = lookInto(file);
  if (!snapshot) return {};
  try {
    return metaValue(snapshot.meta, storedAs(name), told) ?? {};
  } finally {
    snapshot.close();
  }
}

/**
 * Stores what was sent through a separate connection, because the one opened at the beginning may
 * be closed.
 */
function keepTold(
  { snapshot: file }: Config,
  name: string,
  { notices, now }: { notices: readonly Notice[]; now: number },
): void {
  if (!existsSync(file)) return;
  const { meta, transaction, close } = openSnapshot(file);
  const key = storedAs(name);
  try {
    transaction(() => {
      let lines = metaValue(meta, key, told) ?? {};
      for (const notice of notices) lines = after(lines, notice, now);
      meta.set(key, JSON.stringify(lines));
    });
  } finally {
    close();
  }
}
