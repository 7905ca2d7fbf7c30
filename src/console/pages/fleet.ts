/** Shows the workers that share the mirrors of a folder, and lets operators drain them. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { instant } from '../../compose/output/format-values.ts';
import {
  type Fleet,
  type FleetNode,
  servedBy,
  unserved,
} from '../../compose/placement/fleet-store.ts';
import { weightOf } from '../../compose/placement/place-mirrors.ts';
import { formOf } from '../view/form-values.ts';
import { html, timeOf, type Html } from '../view/page.ts';
import { csrfOf, sendOperatorsOnly, sendPage } from '../view/send-page.ts';
import { names, numbers, table } from '../view/table.ts';

/** The workers that share mirrors over one Redis, as one of them sees them. */
export interface ConsoleFleet {
  /** The name of the worker that shows the console. */
  node: string;
  /** Reads what Redis knows now. Throws Unavailable while Redis is away. */
  read(): Promise<Fleet>;
  /**
   * Has a worker give all its mirrors away, or lets it have mirrors again. Returns whether it is
   * alive.
   */
  drain(node: string, isDraining: boolean): Promise<boolean>;
}

/** Sends the page. */
export async function showFleet(
  request: FastifyRequest,
  reply: FastifyReply,
  fleets: readonly ConsoleFleet[],
): Promise<void> {
  const csrf = csrfOf(reply, request.visitor);
  const seen = await Promise.all(
    fleets.map(async ({ node, read }) => ({ node, fleet: await read() })),
  );
  const parts = seen.map(({ node, fleet }) => fleetPart(fleet, { node, csrf, request }));
  const workers = seen.reduce((sum, { fleet }) => sum + fleet.nodes.length, 0);
  await sendPage(request, reply, {
    title: counted(workers, 'worker'),
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      ${parts}`,
  });
}

interface Looked {
  node: string;
  csrf: string;
  request: FastifyRequest;
}

function fleetPart(fleet: Fleet, looked: Looked): Html {
  const columns = [
    names('Worker'),
    'Machine',
    'Since',
    ...['Mirrors', 'People'].map(numbers),
    'State',
    'Action',
  ];
  const rows = fleet.nodes.map((one) => rowOf(one, fleet, looked));
  const free = unserved(fleet);
  return html`<section>
    ${table(columns, rows)}
    ${free.length === 0 ? html`<p>Every mirror is served.</p>` : freePart(free)}
    ${fleet.nodes.map((one) => mirrorsOf(one, fleet))}
  </section>`;
}

function freePart(free: Fleet['mirrors']): Html {
  return html`<div class="flash bad">
    <p>
      Nobody serves ${counted(free.length, 'mirror')}: ${free.map(({ name }) => name).join(', ')}
    </p>
  </div>`;
}

function rowOf(one: FleetNode, fleet: Fleet, looked: Looked) {
  const own = servedBy(fleet, one.name);
  const people = own.reduce((sum, { people: n = 0 }) => sum + n, 0);
  const others = fleet.nodes.filter(({ name, isDraining }) => name !== one.name && !isDraining);
  return [
    one.name === looked.node ? html`${one.name} <small>(this one)</small>` : one.name,
    one.host,
    timeOf(instant(one.since)),
    withCommas(own.length),
    withCommas(people),
    stateOf(one, own.length),
    drainForm(one, others.length > 0, looked),
  ];
}

function stateOf({ isDraining }: FleetNode, mirrors: number): Html {
  if (!isDraining) return html`<span class="chip good">Serves</span>`;
  const text = mirrors === 0 ? 'Drained: it can be stopped' : 'Gives its mirrors away';
  return html`<span class="chip">${text}</span>`;
}

function drainForm(
  { name, isDraining }: FleetNode,
  hasOthers: boolean,
  { csrf, request }: Looked,
): Html {
  if (request.visitor?.role !== 'operator') return html``;
  if (!isDraining && !hasOthers) return html`<small>It is the last one.</small>`;
  return html`<form class="action" method="post" action="/fleet/drain">
    <input type="hidden" name="csrf" value="${csrf}" />
    <input type="hidden" name="node" value="${name}" />
    <button class="second" name="undo" value="${isDraining ? 'yes' : 'no'}">
      ${isDraining ? 'Let it have mirrors' : 'Drain'}
    </button>
  </form>`;
}

/** The mirrors of a worker, heaviest first. */
function mirrorsOf({ name }: FleetNode, fleet: Fleet): Html {
  const own = servedBy(fleet, name).toSorted(
    (a, b) => weightOf(b) - weightOf(a) || a.name.localeCompare(b.name),
  );
  return html`<details>
    <summary>Mirrors of ${name}</summary>
    <ul>
      ${own.map(
        ({ name: mirror, people }) =>
          html`<li>
            <a href="/m/${mirror}">${mirror}</a>
            <small>${people === undefined ? '' : counted(people, 'person', 'people')}</small>
          </li>`,
      )}
    </ul>
  </details>`;
}

const drained = z.object({ node: z.string(), undo: z.enum(['yes', 'no']) });

/** Drains a worker, or lets it have mirrors again, for an operator; then shows the page. */
export async function drainInFleet(
  request: FastifyRequest,
  reply: FastifyReply,
  fleets: readonly ConsoleFleet[],
): Promise<void> {
  if (request.visitor?.role !== 'operator') {
    await sendOperatorsOnly(request, reply);
    return;
  }
  const { node, undo } = formOf(request, drained);
  const done = await Promise.all(fleets.map(async ({ drain }) => drain(node, undo === 'no')));
  const isAlive = done.some(Boolean);
  const line =
    undo === 'yes' ? `${node} may have mirrors again.` : `${node} gives its mirrors away.`;
  request.session.set('flash', {
    kind: isAlive ? 'good' : 'bad',
    lines: [isAlive ? line : `${node} is no longer alive.`],
  });
  await reply.redirect('/fleet', 303);
}
