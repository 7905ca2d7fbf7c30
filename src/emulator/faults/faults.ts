/** The faults that the emulator can play: what reaches the client, and the table of the kinds. */
import type { Random } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { isRoute, rateLimited, type Route, routes } from '../limits/route-limits.ts';
import { seeded } from '../shared/seeded-random.ts';
import type { Answer } from '../../domain/exchange.ts';
import { refuse, toAnswer } from '../shared/api-answer.ts';

/** Describes what reaches the client in response to a request. */
export type Delivery =
  | { is: 'whole'; answer: Answer; delayMs: number }
  /** The headers and half of the body arrive; then the connection is cut. */
  | { is: 'half'; answer: Answer }
  | { is: 'reset' }
  /** Nothing arrives, and the connection stays open. */
  | { is: 'silence' };

interface Told {
  route: Route;
  random: Random;
}

interface FaultKind {
  name: string;
  line: string;
  /** Whether the request is still executed and counted. */
  acts: boolean;
  /** Returns what reaches the client. `handle` executes the request. */
  delivers(handle: (fault: string) => Answer, told: Told): Delivery;
}

const SLOW_MS = { least: 1000, most: 5000 };

export const faultKinds: readonly FaultKind[] = [
  undone('500', '500, and nothing was done', failed),
  done('500-after', '500, though it was done', failed),
  undone('429', '429 with Retry-After: 1, whatever the limit', ({ route }) =>
    whole(toAnswer(rateLimited(route, '1'), { 'retry-after': '1' })),
  ),
  undone('reset-before', 'the connection is cut, nothing was done', cut),
  done('reset-after', 'it was done, then the connection is cut', cut),
  undone('timeout-before', 'no answer ever, and nothing was done', () => ({ is: 'silence' })),
  done('timeout-after', 'it was done, but no answer ever comes', () => ({ is: 'silence' })),
  done('garbage', 'it was done, but the body is a web page', (answer) =>
    whole({ ...answer, ...page }),
  ),
  done('slow', 'the answer comes one to five seconds late', (answer, { random }) => {
    const delayMs = SLOW_MS.least + random() * (SLOW_MS.most - SLOW_MS.least);
    return { is: 'whole', answer, delayMs: Math.round(delayMs) };
  }),
  done('half', 'it was done, but the connection is cut within the body', (answer) => ({
    is: 'half',
    answer,
  })),
];

/** A fault that occurs before the request is executed. */
function undone(name: string, line: string, deliver: (told: Told) => Delivery): FaultKind {
  return { name, line, acts: false, delivers: (_handle, told) => deliver(told) };
}

/** A fault that occurs afterwards, to the real response. */
function done(
  name: string,
  line: string,
  deliver: (answer: Answer, told: Told) => Delivery,
): FaultKind {
  return { name, line, acts: true, delivers: (handle, told) => deliver(handle(name), told) };
}

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

interface Fault {
  kind: FaultKind;
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
    choose: (others: readonly string[]) => void (faults = others.map(parse)),
    /** Handles a request. The first fault that hits it occurs; `lose` logs what never arrived. */
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
      const delivery = delivers(handle, { route, random: chance });
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
