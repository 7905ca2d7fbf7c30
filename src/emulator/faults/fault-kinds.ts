import type { Random } from '../../domain/clock.ts';
import type { Answer } from '../../domain/exchange.ts';
import { refuse, toAnswer } from '../shared/api-answer.ts';
import { rateLimited, type Route } from '../limits/route-limits.ts';

/** Describes what reaches the client in response to a request. */
export type Delivery =
  /** The response arrives after `delayMs`. */
  | { is: 'whole'; answer: Answer; delayMs: number }
  /** The headers and half of the body arrive; then the connection is cut. */
  | { is: 'half'; answer: Answer }
  /** The connection is cut before any response. */
  | { is: 'reset' }
  /** Nothing arrives, and the connection stays open. */
  | { is: 'silence' };

/** A kind of failure. */
export interface FaultKind {
  name: string;
  /** A one-line description for users. */
  line: string;
  /** Whether the request is still executed and counted. */
  acts: boolean;
  /** Returns what reaches the client. `answer` is the real response, present if `acts` is true. */
  delivers(answer: Answer | undefined, told: { route: Route; random: Random }): Delivery;
}

const SLOW_MS = { least: 1000, most: 5000 };

/** Lists every kind of fault. */
export const faultKinds: readonly FaultKind[] = [
  { name: '500', acts: false, line: '500, and nothing was done', delivers: failed },
  { name: '500-after', acts: true, line: '500, though it was done', delivers: failed },
  {
    name: '429',
    acts: false,
    line: '429 with Retry-After: 1, whatever the limit',
    delivers: (_answer, { route }) =>
      whole(toAnswer(rateLimited(route, '1'), { 'retry-after': '1' })),
  },
  {
    name: 'reset-before',
    acts: false,
    line: 'the connection is cut, nothing was done',
    delivers: cut,
  },
  {
    name: 'reset-after',
    acts: true,
    line: 'it was done, then the connection is cut',
    delivers: cut,
  },
  {
    name: 'timeout-before',
    acts: false,
    line: 'no answer ever, and nothing was done',
    delivers: () => ({ is: 'silence' }),
  },
  {
    name: 'timeout-after',
    acts: true,
    line: 'it was done, but no answer ever comes',
    delivers: () => ({ is: 'silence' }),
  },
  {
    name: 'garbage',
    acts: true,
    line: 'it was done, but the body is a web page',
    delivers: (answer) => (answer ? whole({ ...answer, ...page }) : { is: 'reset' }),
  },
  {
    name: 'slow',
    acts: true,
    line: 'the answer comes one to five seconds late',
    delivers: (answer, { random }) => {
      const delayMs = SLOW_MS.least + random() * (SLOW_MS.most - SLOW_MS.least);
      return answer ? { is: 'whole', answer, delayMs: Math.round(delayMs) } : { is: 'reset' };
    },
  },
  {
    name: 'half',
    acts: true,
    line: 'it was done, but the connection is cut within the body',
    delivers: (answer) => (answer ? { is: 'half', answer } : { is: 'reset' }),
  },
];

/** Delivers a response unchanged. */
export function whole(answer: Answer): Delivery {
  return { is: 'whole', answer, delayMs: 0 };
}

function failed(): Delivery {
  const outcome = refuse(500, 'Internal error', {
    why: 'The emulator was told to fail (--fault).',
    fix: 'Send the request again where that is safe; read what became of it where it is not.',
  });
  return whole(toAnswer(outcome, {}));
}

function cut(): Delivery {
  return { is: 'reset' };
}

const page = {
  headers: { 'content-type': 'text/html' },
  body: '<!doctype html><title>Bad gateway</title>',
};
