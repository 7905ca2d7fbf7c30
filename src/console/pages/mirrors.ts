/**
 * Shows all mirrors, those that need attention first, and the workers that share them, which
 * operators can drain.
 */
import { basename } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Fleet } from '../../compose/fleet/fleet.ts';
import { inTurns } from '../../engine/context/work-in-parts.ts';
import { rank } from '../../views/status/attention.ts';
import { stateWord } from '../../views/status/status-sections.ts';
import type { ConsoleMirror, PageStatus } from '../view/console-mirror.ts';
import { fleetSections, shownFleet } from '../../views/status/fleet-sections.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { linkTo } from '../view/page.ts';
import { csrfOf, formOf, sendOperatorsOnly, sendPage } from '../view/layout.ts';

/** A file of a mirror that cannot be used, so that the mirror is stopped. */
export interface RefusedConfiguration {
  file: string;
  /** What is wrong, one line for each mistake. */
  why: string;
}

/**
 * Sends the page of all mirrors; if there is only one, the browser is sent to its page. `hasFleet`:
 * workers share the mirrors, and the console shows them.
 */
export async function showMirrors(
  request: FastifyRequest,
  reply: FastifyReply,
  mirrors: readonly ConsoleMirror[],
  options: { refused: readonly RefusedConfiguration[]; hasFleet: boolean; clock: Clock },
): Promise<void> {
  const { refused, hasFleet, clock } = options;
  const [only, ...others] = mirrors;
  if (only && others.length === 0 && refused.length === 0 && !hasFleet) {
    await reply.redirect(linkTo({ mirror: only }), 303);
    return;
  }
  const places = Map.groupBy(mirrors, ({ isElsewhere }) => isElsewhere());
  const [here, there] = [places.get(false) ?? [], places.get(true) ?? []];
  const seen: { mirror: ConsoleMirror; seen: PageStatus }[] = [];
  // Hundreds of snapshots take seconds, in which this process has other things to do.
  for await (const mirror of inTurns({ clock }, here)) seen.push({ mirror, seen: mirror.status() });
  const ordered = seen.toSorted((a, b) => urgency(b.seen) - urgency(a.seen));
  const card = (name: string | Html, tone: string, lines: readonly (string | Html)[]): Html =>
    html`<li class="card ${tone}">
      <h2>${name}</h2>
      ${lines.map((line) => html`<p>${line}</p>`)}
    </li>`;
  const chip = (tone: string, text: string) => html`<span class="chip ${tone}">${text}</span>`;
  const cards = ordered.map(({ mirror, seen: { status, attention } }) => {
    const { tone, text } = stateWord(status, attention);
    const name = html`<a href="${linkTo({ mirror })}">${status.mirror}</a>`;
    const worst = attention[0]?.text ?? 'Nothing needs attention.';
    return card(name, tone, [chip(tone, text), worst]);
  });
  const where = html`<a href="/fleet">Another worker</a> has it, with its snapshot on a disk of its
    own: the console of that worker shows it.`;
  const elsewhere = there.map(({ config }) => card(config.mirror, '', [where]));
  const stopped = refused.map(({ file, why }) => {
    const is = chip('bad', 'Stopped: this file cannot be used');
    return card(basename(file), 'bad', [is, ...why.split('\n').map(prose)]);
  });
  const urgent = refused.length + ordered.filter((one) => urgency(one.seen) > 0).length;
  const well = elsewhere.length > 0 ? 'The mirrors here are well' : 'All mirrors are well';
  const needs = urgent === 1 ? '1 mirror needs attention' : `${urgent} mirrors need attention`;
  await sendPage(request, reply, {
    title: urgent === 0 ? well : needs,
    body: html`${hasFleet ? html`<p><a href="/fleet">The workers that serve them</a></p>` : ''}
      <ul class="cards">
        ${stopped} ${cards} ${elsewhere}
      </ul>`,
  });
}

/** Returns how urgent a mirror is: 0 if nothing needs attention, most if the worst does. */
function urgency({ attention: [worst] }: PageStatus): number {
  return worst ? 1 / (1 + rank(worst)) : 0;
}

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
      return html`<form class="action" method="post" action="/fleet/drain">
        <input type="hidden" name="csrf" value="${csrf}" />
        <input type="hidden" name="node" value="${name}" />
        <button class="second" name="undo" value="${isDraining ? 'yes' : 'no'}">
          ${isDraining ? 'Let it have mirrors' : 'Drain'}
        </button>
      </form>`;
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
