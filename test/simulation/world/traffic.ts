/** What leaves in one run, counted as far as checkers want to know. */
import type { Request } from '../../../src/domain/exchange.ts';
import { asked } from '../checks/asked.ts';
import type { Outing } from '../checks/checker-state.ts';

export interface Counted {
  left: number;
  /** Requests that something happened to. */
  disturbed: number;
  /** Requests to change something that have reached the platform. */
  writes: number;
  /** Requests about what the run is not about. */
  strays: number;
  /** Since when the platform had refused so many changes that only opt-outs were to go on. */
  brakedAt: number | undefined;
  /** Other changes that left after that. */
  pastBrake: number;
}

export interface Traffic extends Counted {
  leaves(request: Request): void;
  /** Undefined: no usable answer came. */
  ends(request: Request, status: number | undefined): void;
}

const refusedAtLeast = 20;
const share = 0.4;

/** `now`: by the clock that never jumps. */
export function createTraffic(
  { only, proves }: Pick<Outing, 'only' | 'proves'>,
  now: () => number,
): Traffic {
  let changes = 0;
  let refused = 0;
  return {
    left: 0,
    disturbed: 0,
    writes: 0,
    strays: 0,
    brakedAt: undefined,
    pastBrake: 0,
    leaves(request) {
      this.left += 1;
      const isStray = only !== undefined && !request.path.startsWith(paths[only]);
      // Of whose a key is anything may tell.
      if (isStray && !(proves && request.method === 'GET')) this.strays += 1;
      const isBraked = this.brakedAt !== undefined && now() > this.brakedAt;
      const holds = request.method !== 'GET' && asked(request).subscription !== 'opt_out';
      if (isBraked && holds) this.pastBrake += 1;
    },
    ends({ method }, status) {
      if (method === 'GET') return;
      changes += 1;
      if (status === 400 || status === 422) refused += 1;
      // What is sent again counts again: where this says so, so does any other way of counting.
      if (refused >= refusedAtLeast && refused > share * changes) this.brakedAt ??= now();
    },
  };
}

const paths = { contacts: '/api/contacts/', templates: '/api/template/' };
