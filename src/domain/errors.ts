/**
 * The errors that a correct program encounters, as data. An error of any other class is a bug: it
 * propagates unchanged, and cli.ts prints its stack and asks for a report (exit code 1). Disk and
 * file system errors are the exception: compose/output/failure-report.ts explains them.
 *
 *   class         means                                                        exit code
 *   Invalid       input, configuration or a plan that cannot be used             2
 *   Busy          another process is at work, or a file is still being written   75
 *   Interrupted   this process was asked to stop                                 130, 143
 *   Unavailable   no usable response: network, timeout, 5xx, unreadable body     1
 *   RateLimited   the platform kept asking to wait (429)                         1
 *   Rejected      the platform understood a request and refused it (4xx)         1
 *   NotSent       we withheld a request immediately before sending it            1
 *
 * Invalid and Busy end a command. The others end it only outside a run; within a run they become
 * the outcome of a change, or a reason why the run failed.
 */

/** The code of a problem. Programs decide based on this code, never on the problem's text. */
export type ProblemCode =
  // Error classes: the code of their problems, unless a problem has a more specific one.
  | 'invalid'
  | 'busy'
  | 'interrupted'
  | 'unavailable'
  | 'rate-limited'
  | 'rejected'
  | 'not-sent'
  // Problems with a database that a source reads or writes.
  | 'database-access'
  | 'database-refusal'
  // Reasons why a run failed.
  | 'quarantined'
  | 'source-incomplete'
  | 'source-left-out'
  | 'source-changed'
  | 'part-lost'
  | 'circuit-open'
  | 'changes-left'
  | 'outcome-unknown'
  | 'write-back-stuck'
  | 'erasure-unfinished'
  // Other information about a run.
  | 'audit-log'
  | 'policy'
  | 'note';

/** What is wrong and how to fix it, one line each and without personal data. */
export interface Problem {
  code: ProblemCode;
  /** The position in a file: `mirror.yaml:3:5 platform.url`. Others name it in the reason. */
  place?: string | undefined;
  reason: string;
  fix?: string | undefined;
}

type Problems = readonly [Problem, ...Problem[]];

interface Renderable {
  place?: string | undefined;
  reason: string;
  /** Undefined, null or '' if no fix is known. */
  fix?: string | null | undefined;
}

/** Returns `reason → fix` for people. Nothing else adds the arrow, and nothing splits the line. */
export function renderProblem({ place, reason, fix }: Renderable): string {
  const gap = place === undefined ? ' ' : '  ';
  const what = place === undefined ? reason : `${place}${gap}${reason}`;
  return fix ? `${what}${gap}→ ${fix}` : what;
}

interface Detail {
  fix?: string | undefined;
  /** The default is the code of the class. */
  code?: ProblemCode | undefined;
  cause?: unknown;
}

/** An error that is no bug. `problems` is its data, `message` the same as text, a line for each. */
export abstract class ExpectedError extends Error {
  readonly problems: Problems;
  constructor(problems: Problems, { message, cause }: { message?: string; cause?: unknown } = {}) {
    super(message ?? problems.map(renderProblem).join('\n'), { cause });
    this.problems = problems;
  }
}

/** Input, configuration or a plan that cannot be used. Exit code 2, never retried. */
export class Invalid extends ExpectedError {
  override readonly name = 'Invalid';
  constructor(what: string | readonly Problem[], { fix, code = 'invalid', cause }: Detail = {}) {
    const [first, ...more] = typeof what === 'string' ? [{ code, reason: what, fix }] : what;
    if (!first) throw new TypeError('an error needs a problem');
    super([first, ...more], { cause });
  }
}

/** Temporary: another process is at work, or a file is being written. Exit code 75: run again. */
export class Busy extends ExpectedError {
  override readonly name = 'Busy';
  constructor(reason: string, { fix }: { fix?: string | undefined } = {}) {
    super([{ code: 'busy', reason, fix }]);
  }
}

/** This process was asked to stop. Exit code 130 after SIGINT, 143 after SIGTERM. */
export class Interrupted extends ExpectedError {
  override readonly name = 'Interrupted';
  readonly signal: 'SIGINT' | 'SIGTERM';
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    const reason = `interrupted by ${signal}; everything done so far is recorded`;
    super([{ code: 'interrupted', reason }]);
    this.signal = signal;
  }
}

/**
 * No usable response: network, timeout, 5xx or an unreadable body. `acted: no` is proof that the
 * request had no effect (it was never sent); 'maybe' must be resolved by reading.
 */
export class Unavailable extends ExpectedError {
  override readonly name = 'Unavailable';
  readonly acted: 'no' | 'maybe';
  readonly status: number | undefined;
  constructor(
    reason: string,
    detail: Detail & { acted: 'no' | 'maybe'; status?: number | undefined },
  ) {
    const { fix, code = 'unavailable', cause, acted, status } = detail;
    super([{ code, reason, fix }], { cause });
    this.acted = acted;
    this.status = status;
  }
}

/** The platform or a CRM kept asking to wait (429), at last for `retryAfterMs`. */
export class RateLimited extends ExpectedError {
  override readonly name = 'RateLimited';
  readonly retryAfterMs: number;
  readonly route: string;
  constructor(reason: string, wait: { retryAfterMs: number; route: string; fix?: string }) {
    const { retryAfterMs, route, fix } = wait;
    super([{ code: 'rate-limited', reason, fix }]);
    this.retryAfterMs = retryAfterMs;
    this.route = route;
  }
}

interface Refusal {
  status: number;
  /** The reason in the platform's words; '' if it gives none. */
  why: string;
  /** How to fix it; '' if no fix is known. */
  fix: string;
  route: string;
  /** Whether an earlier attempt at the same request may have had its effect; by default 'no'. */
  acted?: 'no' | 'maybe';
}

/** A request that the platform refused (4xx, never 429). `message` lacks `why` and `fix`. */
export class Rejected extends ExpectedError implements Refusal {
  override readonly name = 'Rejected';
  readonly status: number;
  readonly why: string;
  readonly fix: string;
  readonly route: string;
  readonly acted: 'no' | 'maybe';
  constructor(message: string, { status, why, fix, route, acted = 'no' }: Refusal) {
    const more = why === '' || why === message ? '' : `: ${why.replace(/\.$/, '')}`;
    super([{ code: 'rejected', reason: `${message}${more}`, fix: fix || undefined }], { message });
    this.status = status;
    this.why = why;
    this.fix = fix;
    this.route = route;
    this.acted = acted;
  }
}

/** We withheld a request immediately before sending it, so it certainly had no effect. */
export class NotSent extends ExpectedError {
  override readonly name = 'NotSent';
  constructor(reason: string) {
    super([{ code: 'not-sent', reason }]);
  }
}

/** Returns the code of an error of the system or of SQLite, such as ENOENT; '' if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Returns whether an error is expected. Any other is a bug and must be thrown unchanged. */
export function isExpected(error: unknown): error is ExpectedError {
  return error instanceof ExpectedError;
}

/** Returns the expected error that `work` throws, if any. Rethrows unexpected errors. */
export async function failureOf(work: () => Promise<void>): Promise<ExpectedError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!isExpected(error)) throw error;
    return error;
  }
}
