/** The faults that the emulator can play: what reaches the client, and the table of the kinds. */
import type { Random } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { isRoute, rateLimited, type Route, routes } from '../limits/route-limits.ts';
import { seeded } from '../shared/seeded-random.ts';
import type { Answer } from '../../domain/exchange.ts';
import { refuse, toAnswer } from '../shared/api-answer.ts';

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

interface FaultKind {
  name: string;
  line: string;
  /** Whether the request is still executed and counted. */
  acts: boolean;
  /** Returns what reaches the client. `answer` is the real response, present if `acts` is true. */
  delivers(answer: Answer | undefined, told: { route: Route; random: Random }): Delivery;
}

const SLOW_MS = { least: 1000, most: 5000 };

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

/** Delivers a response at once. */
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

/** A kind of fault with its rate and route, as in `500=0.05@contacts.enrol`. */
interface Fault {
  kind: FaultKind;
  /** The share of requests that fail, from 0 to 1. */
  rate: number;
  /** The route that is affected; undefined means every route. */
  route: Route | undefined;
}

/** Creates the faults, drawn from a seed out of `random`. Throws Invalid for a malformed one. */
export function createFaults(texts: readonly string[], random: Random) {
  let faults = texts.map(parse);
  let seed: number | undefined;
  let own: Random | undefined;
  return {
    /** Replaces the faults. Throws Invalid if one cannot be parsed. */
    choose: (others: readonly string[]) => void (faults = others.map(parse)),
    /**
     * Handles a request to a route over a connection on which faults occur; of several faults, the
     * one named first does. `lose` logs a request that never reached the platform.
     */
    receive(
      route: Route | undefined,
      handle: (fault?: string) => Answer,
      lose: (seen: { route: Route; status: number; fault: string }) => void,
    ): Delivery {
      if (faults.length === 0 || route === undefined) return whole(handle());
      seed ??= Math.floor(random() * 2 ** 32);
      own ??= seeded(seed);
      const chance = own;
      const here = faults.filter((fault) => fault.route === undefined || fault.route === route);
      const hit = here.find(({ rate }) => chance() < rate);
      if (!hit) return whole(handle());
      const { name, acts, delivers } = hit.kind;
      const delivery = delivers(acts ? handle(name) : undefined, { route, random: chance });
      const status = delivery.is === 'whole' ? delivery.answer.status : 0;
      if (!acts) lose({ route, status, fault: name });
      return delivery;
    },
    /** Restarts the random sequence, so that the same requests meet the same faults again. */
    restart: () => void (own = undefined),
  };
}

function parse(text: string): Fault {
  const [, name = '', rate = '1', route = '*'] =
    /^([a-z0-9-]+)(?:=(\d*\.?\d+))?(?:@(.+))?$/.exec(text) ?? [];
  const kind = faultKinds.find((one) => one.name === name);
  if (!kind) {
    const known = faultKinds.map((one) => one.name).join(', ');
    throw new Invalid(
      `fault "${text}" is not known: write kind, kind=rate or kind=rate@route, ` +
        `such as 500=0.05@contacts.enrol; kinds are ${known}`,
    );
  }
  if (Number(rate) > 1) throw new Invalid(`fault "${text}": the rate goes from 0 to 1`);
  if (route === '*') return { kind, rate: Number(rate), route: undefined };
  if (isRoute(route)) return { kind, rate: Number(rate), route };
  throw new Invalid(
    `fault "${text}" names no route: use one of ${routes.join(', ')}, or * for all`,
  );
}
