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
import { csrfOf, formOf, sendOperatorsOnly, sendPage } from '../view/layout.ts';
import {
  html,
  timeOf,
  type Html,
  type Cell,
  names,
  numbers,
  table,
} from '../../views/render/html.ts';

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
  const parts = seen.map(({ node, fleet }) => fleetPart(request, fleet, node, csrf));
  const workers = seen.reduce((sum, { fleet }) => sum + fleet.nodes.length, 0);
  await sendPage(request, reply, {
    title: counted(workers, 'worker'),
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      ${parts}`,
  });
}

function fleetPart(request: FastifyRequest, fleet: Fleet, node: string, csrf: string): Html {
  const columns = [
    names('Worker'),
    'Machine',
    'Since',
    ...['Mirrors', 'People'].map(numbers),
    'State',
    'Action',
  ];
  const rows = fleet.nodes.map(({ name, host, since, isDraining }): Cell[] => {
    const own = servedBy(fleet, name);
    const people = own.reduce((sum, { people: n = 0 }) => sum + n, 0);
    const hasOthers = fleet.nodes.some((one) => one.name !== name && !one.isDraining);
    const left = own.length === 0 ? 'Drained: it can be stopped' : 'Gives its mirrors away';
    return [
      name === node ? html`${name} <small>(this one)</small>` : name,
      host,
      timeOf(instant(since)),
      withCommas(own.length),
      withCommas(people),
      isDraining
        ? html`<span class="chip">${left}</span>`
        : html`<span class="chip good">Serves</span>`,
      request.visitor?.role === 'operator' ? drainForm(name, isDraining, hasOthers, csrf) : '',
    ];
  });
  const free = unserved(fleet);
  return html`<section>
    ${table(columns, rows)}
    ${
      free.length === 0
        ? html`<p>Every mirror is served.</p>`
        : html`<div class="flash bad">
            <p>
              Nobody serves ${counted(free.length, 'mirror')}:
              ${free.map(({ name }) => name).join(', ')}
            </p>
          </div>`
    }
    ${fleet.nodes.map((one) => mirrorsOf(one, fleet))}
  </section>`;
}

function drainForm(name: string, isDraining: boolean, hasOthers: boolean, csrf: string): Html {
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
