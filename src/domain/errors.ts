/**
 * The ways a run can go wrong. Each carries data and is decided upon once, at the edge
 * (cli.ts); whatever is not one of them is a bug. Messages are one line: what, where, how to mend.
 */

/** Input, configuration or a plan that cannot be used as it is: exit code 2, never retried. */
export class Invalid extends Error {
  override readonly name = 'Invalid';
}

/**
 * The platform asks to wait (429), and went on asking: `retryAfterMs` is the last wait it named.
 */
export class RateLimited extends Error {
  override readonly name = 'RateLimited';
  readonly retryAfterMs: number;
  readonly route: string;
  constructor(message: string, detail: { retryAfterMs: number; route: string }) {
    super(message);
    this.retryAfterMs = detail.retryAfterMs;
    this.route = detail.route;
  }
}

/**
 * No usable answer: network, time-out, 5xx or an unreadable body. `acted` says whether the request
 * may have had its effect: 'no' is a proof (it never left), 'maybe' has to be resolved by reading.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  readonly acted: 'no' | 'maybe';
  readonly status: number | undefined;
  constructor(
    message: string,
    detail: { acted: 'no' | 'maybe'; status?: number; cause?: unknown },
  ) {
    super(message, { cause: detail.cause });
    this.acted = detail.acted;
    this.status = detail.status;
  }
}

interface Refusal {
  status: number;
  why: string;
  fix: string;
  /** The route that was refused. */
  route: string;
  /** Whether an earlier attempt at the same request may have had its effect; 'no' when left out. */
  acted?: 'no' | 'maybe';
}

/** A request the platform understood and refused (4xx, never 429), in its own words. */
export class Rejected extends Error implements Refusal {
  override readonly name = 'Rejected';
  readonly status: number;
  readonly why: string;
  readonly fix: string;
  readonly route: string;
  readonly acted: 'no' | 'maybe';
  constructor(message: string, { status, why, fix, route, acted = 'no' }: Refusal) {
    super(message);
    this.status = status;
    this.why = why;
    this.fix = fix;
    this.route = route;
    this.acted = acted;
  }
}

/** Withheld by ourselves just before it left: certainly nothing happened. */
export class Held extends Error {
  override readonly name = 'Held';
}

/**
 * Not now: somebody else is at it, or a file is still being written. Exit code 75, come back later.
 */
export class Busy extends Error {
  override readonly name = 'Busy';
}

/** Somebody asked this process to stop. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly signal: 'SIGINT' | 'SIGTERM';
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(`interrupted by ${signal}; everything done so far is recorded`);
    this.signal = signal;
  }
}

export type Expected = Invalid | RateLimited | Unavailable | Rejected | Held | Busy | Interrupted;

/** Whether an error is one of these; anything else is a bug and goes up as it is. */
export function isExpected(error: unknown): error is Expected {
  return [Invalid, RateLimited, Unavailable, Rejected, Held, Busy, Interrupted].some(
    (known) => error instanceof known,
  );
}
