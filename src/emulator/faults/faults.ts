import type { Random } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { isRoute, type Route, routes } from '../limits/route-limits.ts';
import { seeded } from '../shared/seeded-random.ts';
import { type Delivery, type FaultKind, faultKinds, whole } from './fault-kinds.ts';
import type { Answer } from '../../domain/exchange.ts';

/** A kind of fault with its rate and route, as in `500=0.05@contacts.enrol`. */
interface Fault {
  kind: FaultKind;
  /** The share of requests that fail, from 0 to 1. */
  rate: number;
  /** The route that is affected; undefined means every route. */
  route: Route | undefined;
}

/** Decides which requests fail and how. */
export interface Faults {
  /** Replaces the faults. Throws Invalid if one cannot be parsed. */
  choose(texts: readonly string[]): void;
  /**
   * Returns the fault for the next request to a route. If several apply, the one named first wins.
   */
  next(route: Route): { kind: FaultKind; random: Random } | undefined;
  /** Restarts the random sequence, so that the same requests meet the same faults again. */
  restart(): void;
}

/**
 * Creates the faults. They use their own random generator, which is seeded once from `random`, so
 * the same seed gives the same faults. Throws Invalid if one cannot be parsed.
 */
export function createFaults(texts: readonly string[], random: Random): Faults {
  let faults = texts.map(parse);
  let seed: number | undefined;
  let own: Random | undefined;
  return {
    choose: (others) => void (faults = others.map(parse)),
    next(route) {
      if (faults.length === 0) return undefined;
      seed ??= Math.floor(random() * 2 ** 32);
      own ??= seeded(seed);
      const chance = own;
      const here = faults.filter((fault) => fault.route === undefined || fault.route === route);
      const hit = here.find(({ rate }) => chance() < rate);
      return hit && { kind: hit.kind, random: chance };
    },
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

/** The platform at the other end of the connection. */
interface Platform<Request> {
  /**
   * Returns the route of a request, or undefined if the request matches no operation; such a
   * request never fails.
   */
  routeOf(request: Request): Route | undefined;
  /** Handles a request. `fault` is the name of the fault that affects the response. */
  handle(request: Request, fault?: string): Answer;
  /** Logs a request that never reached the platform. */
  lose(request: Request, seen: { route: Route; status: number; fault: string }): void;
}

/** Returns a function that handles requests over a connection on which faults occur. */
export function createReceive<Request>(
  faults: Faults,
  { routeOf, handle, lose }: Platform<Request>,
): (request: Request) => Delivery {
  return (request) => {
    const route = routeOf(request);
    const fault = route && faults.next(route);
    if (!fault) return whole(handle(request));
    const { name, acts, delivers } = fault.kind;
    const answer = acts ? handle(request, name) : undefined;
    const delivery = delivers(answer, { route, random: fault.random });
    const status = delivery.is === 'whole' ? delivery.answer.status : 0;
    if (!acts) lose(request, { route, status, fault: name });
    return delivery;
  };
}
