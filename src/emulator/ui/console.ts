import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { refuse, type ApiOutcome } from '../shared/api-answer.ts';
import type { Dashboard } from './dashboard.ts';
import type { World } from './emulated-world.ts';
import { query } from '../api/request-parsing.ts';
import { acts } from './console-actions.ts';

/** The path prefix of the emulator's own console, which needs no key and has no limit. */
export const CONSOLE = '/_emulator/';

interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
}

/** Holds every view under its name; each accepts `?organization=id` and `?count=100`. */
const views: Record<string, { shows: string; look: Look }> = {
  state: {
    shows: 'everything there is, with at most so many of each kind of record',
    look: ({ world, count }) => world.state(count),
  },
  outbox: {
    shows: 'the test emails that were sent, oldest first',
    look: ({ world, count }) => ({ outbox: world.outbox(count) }),
  },
  requests: {
    shows: 'what was asked of the API, oldest first',
    look: ({ world, count }) => ({ requests: world.requests(count) }),
  },
};

/**
 * Returns whether the request comes from a page of another website, open in the browser of a user
 * who runs an emulator.
 */
export function isForeign({ origin, host }: Record<string, string | undefined>): boolean {
  if (origin === undefined) return false;
  return URL.parse(origin)?.host !== host;
}

/** The response to a page of another website, which could otherwise read and change the world. */
export const foreign: ApiOutcome = refuse(403, 'Forbidden', {
  why: 'The request comes from a page of another site (Origin).',
  fix: 'Ask from the emulator itself, or from a program that sends no Origin.',
});

type Look = (asked: { world: World; count: number }) => object;

const readQuery = query(
  z.object({
    count: z.coerce.number().int().min(0).default(100),
    organization: z.string().optional(),
  }),
);

/** The parts of the emulator that the console shows and acts on. */
interface Played {
  readonly organizationId: string;
  organizations(): string[];
  player(organizationId: string): { world: World; dashboard: Dashboard };
  reset(): void;
}

/**
 * Creates the console.
 *
 *   GET  /_emulator/           all views and actions
 *   GET  /_emulator/<view>     the world
 *   POST /_emulator/<act>      one dashboard action, with its fields as the JSON body
 *   POST /_emulator/reset      restores the world as it was when the first request arrived
 *
 * Views and actions apply to the first organization, or to the one named by ?organization=id.
 */
export function createConsole(emulator: Played): (asked: Asked) => ApiOutcome {
  return (asked) => {
    const read = readQuery(asked.query);
    if (!read.ok) return read.refusal;
    try {
      return answer(emulator, asked, read.value);
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      return refuse(404, 'Not found', {
        why: error.message,
        fix: `GET ${CONSOLE} shows what there is.`,
      });
    }
  };
}

function answer(
  emulator: Played,
  { method, path, body }: Asked,
  {
    count,
    organization = emulator.organizationId,
  }: { count: number; organization?: string | undefined },
): ApiOutcome {
  const name = path.slice(CONSOLE.length);
  const { world, dashboard } = emulator.player(organization);
  if (method === 'GET') {
    if (name === '') {
      return {
        status: 200,
        body: {
          about: 'The emulator of the platform. What is here needs no key, and counts nowhere.',
          organizations: emulator.organizations(),
          look: [
            ...Object.entries(views).map(([name, { shows }]) => ({ get: CONSOLE + name, shows })),
            { get: '/openapi.json', shows: 'the API as OpenAPI 3.1' },
            { get: '/docs', shows: 'the API as a page to read' },
          ],
          act: [
            ...Array.from(acts, ([name, { does, fields }]) => ({
              post: CONSOLE + name,
              does,
              fields,
            })),
            { post: `${CONSOLE}reset`, does: 'leads back to the beginning', fields: {} },
          ],
          options: {
            '?organization=': 'the id of one; the first if left out',
            '?count=': 'default 100',
          },
        },
      };
    }
    const view = Object.hasOwn(views, name) ? views[name] : undefined;
    if (view) return { status: 200, body: view.look({ world, count }) };
  }
  if (method === 'POST') {
    const act = acts.get(name);
    if (act) return act.perform(dashboard, body);
    if (name === 'reset') return reset(emulator);
  }
  throw new Invalid(`The emulator's console does not know ${method} ${path}.`);
}

function reset(emulator: Played): ApiOutcome {
  emulator.reset();
  return { status: 200, body: { reset: true } };
}
