/**
 * Shows all mirrors, those that need attention first, finds a person in all of them, and lets
 * operators pause and resume them; shows the workers that share them, which operators can drain.
 */
import { basename } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Fleet } from '../../compose/fleet/fleet.ts';
import { isExpected } from '../../domain/errors.ts';
import { isBug } from '../../compose/output/failure-report.ts';
import { inTurns } from '../../engine/context/work-in-parts.ts';
import { mirrorStates } from '../../views/status/status-sections.ts';
import type { ConsoleMirror } from '../view/console-mirror.ts';
import {
  fleetSections,
  shownFleet,
  fixOf,
  isIn,
  mirrorsSections,
  pausedBy,
  pausesOf,
  readListed,
  type ShownMirror,
  stateOf,
} from '../../views/status/mirrors.ts';
import type { Section, Text } from '../../views/sections.ts';
import { html, type Html, prose, sectionsHtml, tiles } from '../../views/render/html.ts';
import type { User } from '../access/access-rules.ts';
import { consoleText, personLink } from '../view/console-text.ts';
import { postForm, textField } from '../view/form.ts';
import { linkTo } from '../view/page.ts';
import { findPeople } from './people.ts';
import { csrfOf, formOf, sendPage } from '../view/layout.ts';

/** A file of a mirror that cannot be used, so that the mirror is stopped. */
export interface RefusedConfiguration {
  file: string;
  why: string;
}

const text = z.string().default('');
const filters = z.object({ state: text, name: text }).catch({ state: '', name: '' });

/**
 * Sends the page of all mirrors, or of those of a state or with such a name; if there is only one
 * mirror, the browser is sent to its page. `fleets` is not empty if workers share the mirrors.
 */
export async function showMirrors(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
  shared: {
    refused: readonly RefusedConfiguration[];
    fleets: readonly ConsoleFleet[];
    clock: Clock;
  },
): Promise<void> {
  const { refused, fleets, clock } = shared;
  const [only, ...others] = mirrors;
  if (only && others.length === 0 && refused.length === 0 && fleets.length === 0) {
    await reply.redirect(linkTo({ mirror: only }), 303);
    return;
  }
  // They are not known if workers share no mirrors, or while Redis is away.
  let workers: ReadonlyMap<string, string> | undefined;
  try {
    const all = await Promise.all(fleets.map(async ({ read }) => read()));
    const names = all.flatMap((fleet) => fleet.mirrors);
    if (all.length > 0)
      workers = new Map(names.map(({ name, holder = 'nobody' }) => [name, holder]));
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
  const seen: ShownMirror[] = [];
  // Hundreds of snapshots take seconds, in which this process has other things to do.
  for await (const { config, status } of inTurns({ clock }, mirrors)) {
    seen.push({ ...readListed(config, status), config, worker: workers?.get(config.mirror) });
  }
  const { state, name } = filters.parse(request.query);
  const named = seen.filter(({ config }) => config.mirror.includes(name.trim().toLowerCase()));
  const shown = named.filter((one) => state === '' || isIn(one, state));
  const link = (is: string): string => `/?${new URLSearchParams({ state: is, name }).toString()}`;
  const counts = Object.entries(mirrorStates).flatMap(([is, words]) => {
    const n = named.filter((one) => isIn(one, is)).length;
    return n === 0 ? [] : [[n, words, link(is), is === state] as const];
  });
  const stopped: Section = {
    title: 'Files that cannot be used: their mirrors are stopped',
    lines: refused.flatMap(({ file, why }) =>
      why.split('\n').map((line): Text => [{ tone: 'bad', text: basename(file) }, ' ', line]),
    ),
  };
  const urgent = refused.length + seen.filter((one) => stateOf(one) === 'attention').length;
  const needs = urgent === 1 ? '1 mirror needs attention' : `${urgent} mirrors need attention`;
  const csrf = csrfOf(reply, request.visitor);
  const toWorkers = html`<a href="/fleet">The workers that serve them</a>`;
  const pageLink = (mirror: string): string => `/m/${mirror}`;
  const sections = [stopped, ...mirrorsSections(shown, false)];
  const forms = (name: string): Html | '' => {
    const mirror = mirrors.find(({ config }) => config.mirror === name);
    const one = shown.find(({ config }) => config.mirror === name);
    const fix = one ? fixOf(one) : '';
    if (!mirror || fix === '') return '';
    // The page of approvals says itself how what waits is decided.
    const isHeld = one?.attention[0]?.code === 'held';
    const words = isHeld ? '→ see `crm-mirror approve`' : fix;
    return html`<small class="note">${consoleText({ mirror }, words)}</small>`;
  };
  await sendPage(request, reply, {
    title: urgent === 0 ? 'All mirrors are well' : needs,
    csrf,
    body: html`<div class="row">
        ${personForm('')}
        <form class="action" method="get" action="/">
          <input type="hidden" name="state" value="${state}" />
          ${textField('Name of the mirror', { name: 'name', value: name, isOptional: true })}
          <button class="second">Filter</button>
        </form>
        ${steeringForm(request, csrf, shown)}
        <a href="/since">What has happened since yesterday</a> <a href="/audit">All audit logs</a>
        ${fleets.length > 0 ? toWorkers : ''}
      </div>
      <div id="mirrors" data-refresh="10">
        ${tiles([[named.length, 'All', link(''), state === ''], ...counts])}
        ${sectionsHtml(sections, { pageLink, forms })}
      </div>
      <p class="quiet">
        Last proof: when the last full run began that ended well. The platform equalled the CRM
        then.
      </p>`,
  });
}

/** Reads one mirror after the other. Returns the names of those that cannot be read here. */
export async function readEach(
  mirrors: readonly ConsoleMirror[],
  clock: Clock,
  read: (mirror: ConsoleMirror) => Promise<void>,
): Promise<string[]> {
  const unread: string[] = [];
  // Each snapshot is opened in this process, which answers the CRM meanwhile.
  for await (const mirror of inTurns({ clock }, mirrors)) {
    try {
      await read(mirror);
    } catch (error) {
      if (isBug(error)) throw error;
      unread.push(mirror.config.mirror);
    }
  }
  return unread;
}

function personForm(who: string): Html {
  const field = { name: 'who', value: who, example: 'address, CRM id or hash' };
  return html`<form class="action" method="post" action="/people">
    ${textField('Find a person in all mirrors', field)}
    <button class="second">Find</button>
  </form>`;
}

const searched = z.object({ who: z.string() });

/** Searches all mirrors for a person, and names those that cannot be read here. Changes nothing. */
export async function findInMirrors(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
  clock: Clock,
): Promise<void> {
  const { visitor } = request;
  const { who } = formOf(request, searched);
  const user = { name: '', role: 'viewer', seesAddresses: false, ...visitor } as const;
  let hint = '';
  const found: Html[][] = [];
  const begun: Html[][] = [];
  const unread = await readEach(mirrors, clock, async (mirror) =>
    mirror.read(user, async (seen) => {
      const { keys, none = '', ...is } = await findPeople(seen, who, user);
      const { snapshot, names } = seen;
      const item = (about: Html) => html`<li>${mirror.config.mirror}: ${about}</li>`;
      if (is.isMalformed) hint = none;
      if (is.isUnusable) found.push([item(prose(none))]);
      else if (snapshot && keys.length > 0) {
        const people = keys.map((key) => {
          const href = personLink({ mirror }, snapshot, key);
          return item(html`<a href="${href}">${names({ kind: 'contact', key })}</a>`);
        });
        (is.isExact ? found : begun).push(people);
      }
    }),
  );
  const those = unread.length === 0 ? '' : 'that was searched ';
  const nobody = `No mirror ${those}has a record of this person.`;
  const whole = user.seesAddresses ? '' : ' Type the whole address, a CRM id or a hash.';
  const none =
    begun.length > 0
      ? html`<p>Nobody has exactly this. The first addresses that begin like it:</p>
          <ul>
            ${begun}
          </ul>`
      : html`<p class="flash">${hint === '' ? nobody + whole : hint}</p>`;
  const list = html`<ul>
    ${found}
  </ul>`;
  const others = `Not searched, because their snapshots cannot be read here: ${unread.join(', ')}.`;
  await sendPage(request, reply, {
    title: found.length === 0 ? 'Nobody was found' : `Found in ${counted(found.length, 'mirror')}`,
    body: html`${personForm(who.slice(0, 300))}
      <div role="status">
        ${unread.length > 0 && html`<p class="flash bad">${others}</p>`}
        ${found.length === 0 ? none : list}
      </div>
      <p><a href="/">All mirrors</a></p>`,
  });
}

function steeringForm(
  { visitor }: FastifyRequest,
  csrf: string,
  shown: readonly ShownMirror[],
): Html | '' {
  if (visitor?.role !== 'operator' || shown.length === 0) return '';
  const all = shown.map(({ config }) => config.mirror);
  const which = counted(all.length, 'mirror');
  const free = shown.filter(({ status }) => !status.paused).length;
  const runs = shown.filter(({ status }) => status.running).length;
  const stop = html`<button class="grave" name="what" value="stop">
    Pause, and stop ${counted(runs, 'run')}
  </button>`;
  const pause = html`<button name="what" value="pause">Pause ${counted(free, 'mirror')}</button>`;
  const resume = [...pausesOf(shown)]
    .slice(0, resumesOffered)
    .map(
      ([by, { length }]) =>
        html`<button class="second" name="what" value="${by}">
          Resume ${counted(length, 'mirror')}, paused${by}
        </button>`,
    );
  const content = html`${textField('Reason (required)', { name: 'reason' })} ${free > 0 && pause}
  ${runs > 0 && stop} ${resume}`;
  return html`<details class="inline">
    <summary>Pause or resume ${all.length === 1 ? 'it' : `these ${which}`}</summary>
    ${postForm(csrf, '/steer', content, { mirrors: all.join(' ') })}
  </details>`;
}

const resumesOffered = 3;

/** `what`: pause, stop, or whose pauses end, and for which reason they were. */
const steered = z.object({
  what: z.enum(['pause', 'stop']).or(z.templateLiteral([' by ', z.string()])),
  mirrors: z.string(),
  reason: z.string().trim().min(1).max(300),
});

/**
 * Pauses, stops or resumes the mirrors that the page showed, for an operator; shows the page.
 * Leaves a pause as it is that is there already or not the one to end, and names it.
 */
export async function steerMirrors(
  request: FastifyRequest,
  reply: FastifyReply,
  user: User,
  mirrors: readonly ConsoleMirror[],
): Promise<void> {
  const { what, reason, mirrors: asked } = formOf(request, steered);
  const wanted = asked.split(' ');
  const isPause = what === 'pause' || what === 'stop';
  const lines: Text[] = [];
  /** What needs no attention, such as: acme is paused. */
  const usual: string[] = [];
  const kept: Text[] = [];
  let [done, isDone] = [0, true];
  for (const { config, status, run } of mirrors) {
    const { mirror: page } = config;
    if (!wanted.includes(page)) continue;
    const { paused, running } = readListed(config, status).status;
    const by = paused && pausedBy(paused);
    const isKept = by !== null && (isPause || by !== what);
    if (isKept)
      kept.push([{ page, text: page }, isPause ? ' was already paused' : ' stays paused', by]);
    if (isKept ? what !== 'stop' || !running : !isPause && by === null) continue;
    const argv = what === 'stop' ? ['pause', '--stop'] : [isPause ? 'pause' : 'resume'];
    // Without a reason, a pause stays as it is while it stops the run.
    const { code, lines: said } = await run(user, isKept ? argv : [...argv, `--reason=${reason}`]);
    isDone &&= code === 0;
    if (code === 0 && !isKept) done += 1;
    if (code === 0) (said.length > 1 ? lines : usual).push(said.join(' '));
    else lines.push(...said.map((line) => `${page}: ${line}`));
  }
  const count = `${counted(done, 'mirror')} ${isPause ? 'paused' : 'resumed'}.`;
  const each = { title: 'Each of them', isFolded: true, lines: usual };
  const sections: Section[] =
    done === 1
      ? [{ lines: [...lines, ...usual, ...kept] }]
      : [{ lines: [count, ...lines, ...kept] }, each];
  request.session.set('flash', { kind: isDone ? 'good' : 'bad', sections });
  await reply.redirect('/', 303);
}

/** The workers that share mirrors over one Redis, as one of them sees them. */
export interface ConsoleFleet {
  node: string;
  /** Reads what Redis knows now. Throws Unavailable while Redis is away. */
  read(): Promise<Fleet>;
  /**
   * Has a worker give all its mirrors away, or lets it have mirrors again. Returns whether it is
   * alive.
   */
  drain(node: string, isDraining: boolean): Promise<boolean>;
}

/** Sends the page of the workers. */
export async function showFleet(
  request: FastifyRequest,
  reply: FastifyReply,
  fleets: readonly ConsoleFleet[],
): Promise<void> {
  const csrf = csrfOf(reply, request.visitor);
  const seen = await Promise.all(
    fleets.map(async ({ node, read }) => ({ node, fleet: shownFleet(await read()) })),
  );
  const parts = seen.map(({ node, fleet }) => {
    const { workers } = fleet;
    const forms = (name: string): Html | '' => {
      const worker = workers.find(({ row }) => row.node === name);
      if (!worker || request.visitor?.role !== 'operator') return '';
      const hasOthers = workers.some(({ row }) => row.node !== name && !row.draining);
      const isDraining = worker.row.draining;
      if (!isDraining && !hasOthers) return html`<small>It is the last one.</small>`;
      const button = html`<button class="second" name="undo" value="${isDraining ? 'yes' : 'no'}">
        ${isDraining ? 'Let it have mirrors' : 'Drain'}
      </button>`;
      return postForm(csrf, '/fleet/drain', button, { node: name });
    };
    const pageLink = (mirror: string): string => `/m/${mirror}`;
    return html`<section>
      ${sectionsHtml(fleetSections(fleet, { here: node }), { pageLink, forms })}
    </section>`;
  });
  const workers = seen.reduce((sum, { fleet }) => sum + fleet.workers.length, 0);
  await sendPage(request, reply, {
    title: counted(workers, 'worker'),
    csrf,
    body: html`<p><a href="/">All mirrors</a></p>
      ${parts}`,
  });
}

const drained = z.object({ node: z.string(), undo: z.enum(['yes', 'no']) });

/** Drains a worker, or lets it have mirrors again, for an operator; then shows the page. */
export async function drainInFleet(
  request: FastifyRequest,
  reply: FastifyReply,
  fleets: readonly ConsoleFleet[],
): Promise<void> {
  const { node, undo } = formOf(request, drained);
  const done = await Promise.all(fleets.map(async ({ drain }) => drain(node, undo === 'no')));
  const isAlive = done.some(Boolean);
  const does = undo === 'yes' ? 'may have mirrors again' : 'gives its mirrors away';
  const lines = [`${node} ${isAlive ? does : 'is no longer alive'}.`];
  request.session.set('flash', { kind: isAlive ? 'good' : 'bad', sections: [{ lines }] });
  await reply.redirect('/fleet', 303);
}
