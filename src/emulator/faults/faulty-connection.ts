import type { Answer } from '../../domain/exchange.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Faults } from './faults.ts';
import { whole, type Delivery } from './fault-kinds.ts';

/** What lies behind the connection. */
interface Platform<Request> {
  /** Returns the route of a request; undefined: it is no operation, and does not fail. */
  routeOf(request: Request): Route | undefined;
  /** Answers a request; `fault` is the name of what becomes of the answer. */
  handle(request: Request, fault?: string): Answer;
  /** Logs a request that the platform never saw. */
  lose(request: Request, seen: { route: Route; status: number; fault: string }): void;
}

/** Returns a function that takes requests over a connection on which faults happen. */
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
