/**
 * Sends what is due to one sink. What is due depends on what the receiver was told, which another
 * process may change at any time, so each attempt begins anew:
 *
 *   1  read what the receiver was told; nothing is due: done
 *   2  store a claim (told-memory.ts); it cannot be stored: send nothing
 *   3  read the status and what the receiver was told; nothing is due any more: done
 *   4  send one message, then store what was told and end the claim
 *
 * A process that finds the claim of another one waits as after a failed attempt.
 */
import type { Clock, Random } from '../../domain/clock.ts';
import { Busy, isExpected, renderProblem } from '../../domain/errors.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import type { Config } from '../../config/config.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { withConfig } from '../../compose/output/printed-commands.ts';
import { isPresent } from '../../views/status/attention.ts';
import { type Found, type Notice, noticesOf } from '../../views/status/trouble-notice.ts';
import type { Log } from '../../app/run/run-log.ts';
import { type Item, itemOf, type Message, type Outcome, type Sink } from './sink.ts';
import { causeOf, type SharedCauses } from './shared-causes.ts';
import { solvedNotices, type Told, type ToldMemory } from './told-memory.ts';

export interface Seen {
  found: Found[];
  run: string | null;
  /** Whether such a run is in progress, so that the outcome of the last one is not visible. */
  isRunning: boolean;
}

/** What a notifier knows of one sink, and what a delivery needs. */
export interface Line {
  config: Config;
  shell: Pick<Shell, 'stop' | 'abort'>;
  log: Pick<Log, 'noticed'>;
  clock: Clock;
  random: Random;
  sink: Sink;
  memory: ToldMemory;
  causes?: SharedCauses | undefined;
  /** Reads the state of the mirror; undefined if that fails. */
  look(): Seen | undefined;
  /** The refusal that was printed last, which is printed once. */
  refusal: string;
  /** Before this time, the receiver wants no attempt. */
  waitUntil: number;
  /** How many deliveries have failed since the last one that did not, and when to try again. */
  failed: { times: number; retryAt: number };
}

type Failed = Exclude<Outcome, { is: 'sent' }>;

interface Draft {
  notices: [Notice, ...Notice[]];
  message: Message;
  /** Whether another mirror has told it, so that nothing is sent. */
  isTold: boolean;
}

/** The longest time that a receiver may name before the next attempt; a longer one ends them. */
const longestWaitMs = 60_000;

/**
 * Sends the messages that are due, one after the other, with several attempts for each. Stops at
 * the first one that could not be sent, because the next run sends the remaining ones. `newest`
 * returns the state at the end of the last run.
 */
export async function deliverDue(line: Line, newest: () => Seen): Promise<void> {
  const { sink, shell, log, clock, random } = line;
  let draft: Draft | undefined;
  try {
    if (clock.now() < line.waitUntil) return;
    let tries = 0;
    while (!shell.stop.aborted) {
      const tried = await attempt(line, newest, draft);
      if (!tried) return;
      const { outcome } = tried;
      [draft, tries] = outcome.is === 'sent' ? [undefined, 0] : [tried.draft, tries + 1];
      if (outcome.is === 'sent') {
        line.failed = { times: 0, retryAt: 0 };
        continue;
      }
      const schedule = retrySchedules.notification;
      if (outcome.is === 'refused' || tries >= schedule.tries) {
        return sayFailure(line, draft, outcome);
      }
      const waitMs = Math.max(retryDelayMs(schedule, tries, random), outcome.waitMs ?? 0);
      if (waitMs > longestWaitMs) return sayFailure(line, draft, outcome);
      await clock.sleep(waitMs, shell.stop);
    }
  } catch (error) {
    if (!shell.stop.aborted) log.noticed(draft?.notices[0], sayWhy(error), { to: sink.name });
  }
}

/**
 * Makes one attempt with the first message that is due; `earlier` is that of the attempt before.
 * Returns undefined if none is due, and no draft if another process has the claim and none is.
 */
async function attempt(
  line: Line,
  newest: () => Seen,
  earlier: Draft | undefined,
): Promise<{ draft: Draft | undefined; outcome: Outcome } | undefined> {
  const { sink, memory, shell } = line;
  let told = memory.read();
  let draft = draftOf(line, { told, seen: newest() }, earlier);
  if (!told.isClaimed && draft) told = claim(line);
  if (told.isClaimed) {
    const reason = 'another process is sending to this receiver';
    return { draft, outcome: { is: 'later', reason } };
  }
  if (!draft) {
    if (!told.isStored) release(line);
    return undefined;
  }
  let outcome: Outcome | undefined;
  try {
    const now = line.look();
    draft = draftOf(line, { told, seen: now?.isRunning === false ? now : newest() }, draft);
    draft?.notices.forEach((notice) => sharedOf(line, notice)?.sending());
    if (draft?.isTold) outcome = { is: 'sent' };
    else if (draft) outcome = await sink.deliver(draft.message, shell.abort);
  } finally {
    release(line, draft, outcome);
  }
  return outcome && { draft, outcome };
}

/** Claims the receiver. Throws Busy if the snapshot cannot be written: then nothing is sent. */
function claim({ memory }: Line): ReturnType<ToldMemory['claim']> {
  try {
    return memory.claim();
  } catch (error) {
    const { reason, fix } = explain(error).problem;
    throw new Busy(`nothing is sent while it cannot be stored that it was: ${reason}`, { fix });
  }
}

/**
 * Stores what came of an attempt, or of an earlier one, logs what was sent, and ends the claim. A
 * draft without an outcome was interrupted.
 */
function release(line: Line, draft?: Draft, outcome?: Outcome): void {
  const { memory, sink, log, clock } = line;
  const isSent = outcome?.is === 'sent';
  const at = clock.now();
  const tried = draft?.notices.map((notice) => ({ notice, at, isSent })) ?? [];
  let but = isSent ? outcome.but : undefined;
  try {
    memory.release(tried);
  } catch (error) {
    // Without a message that was sent, only the claim is left over, which ends by itself.
    but ??= `it cannot be stored that this was sent: ${explain(error).problem.reason}`;
  }
  for (const { notice } of tried) {
    const shared = sharedOf(line, notice);
    if (isSent) shared?.sent(draft?.message.mirrors);
    else shared?.failed();
  }
  if (!isSent) return;
  if (draft?.isTold) return;
  for (const { notice } of tried) log.noticed(notice, undefined, { to: sink.name, but });
}

/**
 * Returns the next message, or undefined if nothing is due. It is the earlier one if that reports
 * the same, so that a receiver can recognise it by its id.
 */
function draftOf(
  line: Line,
  { told, seen }: { told: Told; seen: Seen },
  earlier: Draft | undefined,
): Draft | undefined {
  const { config, sink, clock } = line;
  const now = clock.now();
  const due = [...noticesOf(told.lines, seen.found, now), ...solvedNotices(told, seen.found, now)];
  const wanted = due.filter(({ type, trouble, subject }) =>
    type === 'mirror.recovered' ? !seen.isRunning || isPresent(subject) : sink.wants(trouble),
  );
  const decided = wanted.map((notice) => ({ notice, is: sharedOf(line, notice)?.decide() ?? [] }));
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
  const [, ...rest] = notices;
  const items: Message['items'] = [item(first), ...rest.map(item)];
  const head = headOf(config, line);
  const page = pageOf(items);
  const link = head.link === undefined || page === '' ? head.link : `${head.link}/${page}`;
  const mirrors = one && typeof one.is !== 'string' ? { mirrors: one.is } : {};
  const message = { ...head, link, run: seen.run, items, ...mirrors };
  return { notices, message, isTold: one?.is === 'told' };
}

/** Returns what the mirrors of this process do about a cause that they may share. */
function sharedOf({ causes, config, sink }: Line, { subject, type }: Notice) {
  const cause = causeOf(config, subject);
  if (!causes || cause === undefined) return undefined;
  const { mirror } = config;
  const about = { mirror, cause, receiver: sink.receiver, isOver: type === 'mirror.recovered' };
  return {
    decide: () => causes.decide(about),
    sending: () => causes.sending(about),
    failed: () => causes.failed(about),
    sent: (mirrors: readonly string[] = [mirror]) => causes.sent(about, mirrors),
  };
}

/** Returns what notices report. Their texts are left out, because they name how long ago it was. */
function contentOf(notices: readonly Notice[]): string {
  return JSON.stringify(notices.map(({ type, subject, withheld }) => [type, subject, withheld]));
}

/** The page that mends all that is not solved; '' (the overview) if there are several. */
export function pageOf(items: readonly Item[]): string {
  const open = items.filter(({ level }) => level !== 'info');
  const [first, ...more] = new Set(open.map(({ page }) => page));
  return more.length === 0 ? (first ?? '') : '';
}

/** Returns the parts of a message that do not depend on what it reports. */
export function headOf(
  { mirror, server }: Config,
  { clock, random }: { clock: Clock; random: Random },
) {
  const at = clock.now();
  const id = `msg_${at.toString(36)}${random().toString(36).slice(2, 12)}`;
  const base = server?.publicUrl;
  return { id, at, mirror, link: base === undefined ? undefined : `${base}/m/${mirror}` };
}

const retryAfter = { firstMs: 300_000, mostMs: 3_600_000 };

/**
 * Logs why a notice was not sent. A refusal that was already logged is not repeated. Without a run
 * in between, a worker tries again after 5, 10, 20 ... 60 minutes.
 */
function sayFailure(line: Line, draft: Draft | undefined, outcome: Failed): void {
  const { log, clock, sink, shell, failed } = line;
  if (shell.stop.aborted || !draft) return;
  const why = outcome.is === 'refused' ? renderProblem(outcome) : outcome.reason;
  const retryMs = Math.min(retryAfter.firstMs * 2 ** failed.times, retryAfter.mostMs);
  line.failed = { times: failed.times + 1, retryAt: clock.now() + retryMs };
  if (outcome.is === 'later') line.waitUntil = clock.now() + (outcome.waitMs ?? 0);
  else if (why === line.refusal) return;
  line.refusal = outcome.is === 'refused' ? why : '';
  log.noticed(draft.notices[0], why, { to: sink.name });
}

export function sayWhy(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return isExpected(error) ? why : `a bug: ${why}`;
}
