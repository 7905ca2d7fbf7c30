import { z } from 'zod';
import { Invalid } from '../model/errors.ts';
import { email, templateUpdateBody } from '../platform/request.ts';
import { refuse, type Outcome } from './answer.ts';
import type { Dashboard } from './dashboard.ts';
import { json, query } from './operation/read.ts';

/** What lies under this path is the emulator's own, for whoever plays with it: no key, no limit. */
export const CONSOLE = '/_emulator/';

/**
 * GET  /_emulator/state?count=100   the world, with at most so many of each kind of record
 * POST /_emulator/<act>             one act of the dashboard, its fields as the JSON body
 */
type Console = (asked: {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
}) => Outcome;

export function createConsole(dashboard: Dashboard, readState: (count: number) => object): Console {
  const acts = createActs(dashboard);

  return (asked) => {
    const name = asked.path.slice(CONSOLE.length);
    const act = acts.get(name);
    if (act !== undefined && asked.method === 'POST') return act(asked.body);
    if (name === 'state' && asked.method === 'GET') {
      const read = readCount(asked.query);
      return read.ok ? { status: 200, body: readState(read.value.count) } : read.refusal;
    }
    return refuse(404, 'Not found', {
      why: `The emulator's console does not know ${asked.method} ${asked.path}.`,
      fix: `GET ${CONSOLE}state, or POST ${CONSOLE}<act>, one of ${[...acts.keys()].join(', ')}.`,
    });
  };
}

const readCount = query(z.object({ count: z.coerce.number().int().min(0).default(100) }));

const contact = z.string();
const person = z.strictObject({ contact });
const signUp = z.strictObject({
  email,
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  channels: z.array(z.string()).optional(),
});
const leave = z.strictObject({ contact, channel: z.string() });
const suppress = z.strictObject({ contact, reason: z.string() });
const editTemplate = z.strictObject({ template: z.string(), fields: templateUpdateBody });

type Act = (body: string) => Outcome;

function createActs(dashboard: Dashboard): ReadonlyMap<string, Act> {
  return new Map([
    act('sign-up', signUp, (body) => dashboard.signUp(body)),
    act('leave', leave, (body) => dashboard.leave(body.contact, body.channel)),
    act('unsubscribe', person, (body) => dashboard.unsubscribe(body.contact)),
    act('resubscribe', person, (body) => dashboard.resubscribe(body.contact)),
    act('block', person, (body) => dashboard.block(body.contact)),
    act('suppress', suppress, (body) => dashboard.suppress(body.contact, body.reason)),
    act('delete', person, (body) => dashboard.deleteContact(body.contact)),
    act('edit-template', editTemplate, (body) =>
      dashboard.editTemplate(body.template, body.fields),
    ),
  ]);
}

function act<T>(name: string, schema: z.ZodType<T>, run: (body: T) => object): [string, Act] {
  const readBody = json(schema);
  return [
    name,
    (text) => {
      const read = readBody(text);
      if (!read.ok) return read.refusal;
      try {
        return { status: 200, body: run(read.value) };
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        const fix = 'GET /_emulator/state shows what there is.';
        return refuse(404, 'Not found', { why: error.message, fix });
      }
    },
  ];
}
