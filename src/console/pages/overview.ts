/**
 * Shows the state of a mirror: whether it is in sync, what needs attention, what goes on, and its
 * history as plots; and the rate limits of the platform, as they are now or as the last run saw
 * them.
 */
import { withCommas } from '../../domain/values/counted.ts';
import { canaryWords } from '../../engine/report/guard-text.ts';
import { withMemory } from '../../store/memory/memory.ts';
import { instant, lasting, range } from '../../compose/output/format-values.ts';
import { sayUsage } from '../../domain/route-limit.ts';
import { tickWords } from '../../config/schema/cron-pattern.ts';
import {
  attentionItem,
  calmWords,
  exceptionLinks,
  exceptions,
  heldRecords,
  openCount,
  problemCount,
  stateWord,
  statusSection,
  windowWords,
} from '../../views/status/status-sections.ts';
import { consoleText, readerOf } from '../view/console-text.ts';
import { actionForm, liveArea, progressLine } from '../view/form.ts';
import { html, type Html, prose, sectionsHtml, tiles, timeOf } from '../../views/render/html.ts';
import { names, numbers, spansOf } from '../../views/sections.ts';
import { link, linkTo, orFault, type Page, type PageRequest } from '../view/page.ts';
import type { PageStatusAndNext } from '../view/console-mirror.ts';
import type { Standing } from '../../views/status/mirrors.ts';
import { historySection, mirrorPlots, routePlots } from './history.ts';
import { rehearsalLink } from './rehearsal.ts';
import {
  type Attention,
  mendingPages,
  stoppedWords,
  unexplained,
} from '../../views/status/attention.ts';
import type { CurrentStatus } from '../../views/status/status-document.ts';

/** The overview of a mirror. */
export const overviewPage: Page = {
  path: '',
  nav: 'Overview',
  async show(request) {
    const seen = await request.mirror.statusAndNext();
    const { details: below, ...pieces } = statusPieces(request, seen);
    return {
      title: seen.status.mirror,
      body: html`${liveArea(request, pieces)} ${await historySection(request, mirrorPlots)}
        <div id="details">${below}</div>`,
    };
  },
};

/** Returns the parts of the overview that change while it is open, by id. */
export function statusPieces(
  request: PageRequest,
  seen: PageStatusAndNext,
): Record<'state' | 'attention' | 'actions' | 'figures' | 'details', Html> {
  const shown = unexplained(seen.status, seen.attention);
  // The one prominent button ends the pause, mends what is worst, or runs.
  const mended = shown.find(({ code }) => mendingPages[code] ?? code === 'quarantined');
  const main = seen.status.paused ? 'resume' : (mended?.code ?? 'run-full');
  return {
    state: stateSection(request, seen),
    attention: attentionPart(request, seen.status, shown, main),
    actions: html`<div class="row">
      ${runForms(request, seen, main)} ${rehearsalLink(request)}
    </div>`,
    figures: figures(request, seen),
    details: isUnreadable(seen) ? html`` : details(request, seen),
  };
}

/** Returns whether the status says nothing, because the snapshot cannot be read. */
function isUnreadable({ attention }: Standing): boolean {
  return attention.some(({ code }) => code === 'snapshot_unreadable');
}

function stateSection(request: PageRequest, seen: Standing): Html {
  const { status } = seen;
  const { is, tone, text, short } = stateWord(status, seen.attention);
  const but = is === 'well' ? exceptionLinks(status) : [];
  const { firstLoad } = status;
  const age = status.proven?.ageMs ?? null;
  const proven =
    age === null
      ? `No full run has ended well yet${firstLoad ? `: ${stoppedWords(firstLoad)}` : ''}.`
      : `The last complete run began ${range(age)} ago: the platform equalled the CRM then.`;
  const canaries = (status.canaries ?? []).map(
    (one) => html`<p class="quiet">${prose(canaryWords(one))}.</p>`,
  );
  // Otherwise the words of a calm mirror contain it.
  const isTold = seen.attention.length === 0 && exceptions(status) === '';
  const waiting = isTold ? [] : (status.waiting ?? []);
  const waits = windowWords(waiting).map(
    (words) => html`<p class="quiet">${prose(words)} (windows).</p>`,
  );
  return html`<p class="state">
      <span class="chip ${tone}">${but.length > 0 ? short : text}</span>
      ${but.map((one, at) => html`${at > 0 ? ' · ' : ''}${link(request, one.page, one.text)}`)}
      ${!isUnreadable(seen) && proven}
    </p>
    ${canaries} ${waits} ${progressLine(status)}`;
}

const pausing = { action: 'pause', label: 'Pause', needsReason: true };
export const stopping = { action: 'pause-stop', label: 'Pause and stop the run', isGrave: true };

function runForms(request: PageRequest, { status }: Standing, main: string): Html | '' {
  if (request.user.role !== 'operator') return '';
  const { running, paused } = status;
  const resume = { action: 'resume', label: 'End the pause', needsReason: 'optional' } as const;
  const stop = { ...stopping, label: 'Stop the run', needsReason: true };
  if (paused) return html`${running && actionForm(request, stop)} ${actionForm(request, resume)}`;
  const isSecond = main !== 'run-full';
  const runs = html`${actionForm(request, { action: 'run-full', label: 'Run now', isSecond })}
  ${actionForm(request, { action: 'run-fast', label: 'Fast run', isSecond: true })}`;
  return html`${!running && runs}
    <details class="inline">
      <summary>Pause</summary>
      <p class="quiet">
        No further run
        begins.${running && ' What a stopped run has done is recorded; the next does the rest.'}
      </p>
      ${actionForm(request, running ? { ...pausing, second: stopping } : pausing)}
    </details>`;
}

function attentionPart(
  request: PageRequest,
  status: CurrentStatus,
  shown: readonly Attention[],
  main: string,
): Html {
  if (shown.length === 0) {
    // Otherwise the state names what there is, with links.
    if (exceptions(status) !== '') return html``;
    return html`<p class="quiet">${status.mirror}: ${consoleText(request, calmWords(status))}.</p>`;
  }
  // What awaits approval is decided on a page, and not by the command that the text names.
  const lines = shown.map((one) => attentionItem(one.code === 'held' ? { ...one, fix: '' } : one));
  const pages = new Set<string>();
  const forms = (code: string): Html | '' => {
    const page = mendingPages[code] ?? code;
    if (pages.has(page)) return '';
    pages.add(page);
    const [place, isSecond] = [mendingPages[code], main !== code];
    if (place !== undefined) {
      return html`<a class="button ${isSecond ? 'second' : ''}" href="${linkTo(request, place)}"
        >Look at the ${subjects[place]}</a
      >`;
    }
    if (code !== 'quarantined' || request.user.role !== 'operator') return '';
    const label = 'Try again';
    return actionForm(request, { action: 'retry', label, needsReason: 'optional', isSecond });
  };
  return html`<section class="attention" aria-label="What needs attention">
    <h2>What needs attention</h2>
    ${sectionsHtml([{ lines, isList: true }], { ...readerOf(request), forms })}
  </section>`;
}

/** What the pages on which something is mended show. */
const subjects = {
  approvals: 'changes',
  problems: 'problems',
  runs: 'runs',
  audit: 'audit log',
} as const;

function figures(request: PageRequest, { status, next }: PageStatusAndNext): Html {
  const { recorded } = status;
  const approved = heldRecords(status).reduce((sum, one) => sum + one.approved, 0);
  // Nothing is due next while no worker begins anything.
  const isDue = !status.paused && next.unknown === undefined;
  const all = [
    ...(status.running ? [[...restTile(status), 'limits'] as const] : []),
    [recorded ? withCommas(recorded.contacts) : '–', 'people recorded', 'people'],
    [withCommas(openCount(status)), 'await a decision', 'approvals'],
    ...(approved > 0 ? [[withCommas(approved), 'approved, wait for a run', 'approvals']] : []),
    [withCommas(problemCount(status)), 'records with a problem', 'problems'],
    ...(isDue ? next.due.slice(0, 1) : []).map(({ run, at }) => {
      const tick = run === 'templates' ? 'run for templates' : tickWords(run);
      const leftMs = Date.parse(at) - Date.parse(status.at);
      const overdue = status.running ? 'after this run' : 'now';
      const what = html`next ${tick}${(run === 'full' || run === 'fast') && ' run'}: ${timeOf(at)}`;
      return [leftMs > 0 ? `in ${range(leftMs)}` : overdue, what, 'runs'] as const;
    }),
  ] as const;
  return tiles(all.map(([value = '', of = '', path]) => [value, of, linkTo(request, path)]));
}

/** Shows how long the run in progress still takes. */
function restTile({ at, running }: CurrentStatus) {
  const leftMs = running?.leftMs ?? null;
  const end = timeOf(instant(Date.parse(at) + (leftMs ?? 0)));
  return leftMs === null
    ? (['–', 'left: not known yet'] as const)
    : ([lasting(leftMs), html`left, done at about ${end}`] as const);
}

function details(request: PageRequest, { status, next }: PageStatusAndNext): Html {
  const { facts = [] } = statusSection(status, next, false);
  // What goes on stands at the top.
  const shown = facts.filter(([name]) => !(status.running && name === 'right now'));
  // Those that say that there is none share one line.
  const isNone = ([, value]: (typeof facts)[number]) =>
    spansOf(value).every(
      (span) => typeof span === 'object' && 'tone' in span && span.tone === 'quiet',
    );
  const none = shown.filter(isNone).map(([name]) => name);
  const all = shown.filter((one) => !isNone(one));
  if (none.length > 0) all.push(['none', none.join(', ')]);
  return sectionsHtml([{ title: 'Details', facts: all }], readerOf(request));
}

/** The page of the rate limits. */
export const limitsPage: Page = {
  path: 'limits',
  nav: 'Rate limits',
  async show(request) {
    const pieces = limitPieces(request, request.mirror.status());
    const { memory } = request.mirror.config;
    const found = orFault(() => withMemory(memory, ({ requests }) => requests.lastRefused()) ?? []);
    const answers = 'fault' in found ? [] : found;
    const lines = answers.map(
      ({ route, n, at }) => `${route}: ${instant(at)}, ${withCommas(n)} in the request log`,
    );
    const none = 'fault' in found ? found.fault : 'The request log holds no such answer.';
    const refused = { title: 'Last refused (429)', lines, isList: true, none };
    const body = html`${liveArea(request, pieces)} ${sectionsHtml([refused], {})}
    ${await historySection(request, routePlots)}`;
    return { title: 'Rate limits', body };
  },
};

/** Returns what the page of a run shows of it until it has ended. */
export function runProgress(status: CurrentStatus): Html {
  if (!status.running) return html`<p role="status" data-ended>It has ended.</p>`;
  return html`${tiles([restTile(status)])} ${progressLine(status)}`;
}

/** Returns the parts of the page that change while it is open, by id. */
export function limitPieces(
  { mirror }: PageRequest,
  { status, attention }: Standing,
): Record<string, Html> {
  const unread = attention.find(({ code }) => code === 'snapshot_unreadable');
  const { running, limits: stored } = status;
  // The requests used in this window by everybody are known only to the process that sends some.
  type Row = (typeof stored)[number] & { used?: string | undefined };
  const rows = new Map(stored.map((one): [string, Row] => [one.route, one]));
  for (const [route, seen] of Object.entries(mirror.limits())) {
    const { limit, windowMs, others } = seen;
    if (limit === undefined || windowMs === undefined) continue;
    // At rest, the last response tells of a window that is over.
    const used = running ? sayUsage(seen, mirror.config.platform.reserve) : undefined;
    rows.set(route, { route, limit, windowMs, others, used, at: 'now' });
  }
  // A run of another process tells the limit that holds it up, and how fast it is.
  const { limit: slowest = null, perSecond = null } = running ?? {};
  if (slowest && rows.get(slowest.route)?.used === undefined) {
    const { route, limit, windowMs } = slowest;
    const pace = Math.min(limit, Math.round(((perSecond ?? 0) * windowMs) / 1000));
    const used = perSecond === null ? undefined : `about ${withCommas(pace)}`;
    rows.set(route, { ...slowest, others: rows.get(route)?.others ?? 0, used, at: 'now' });
  }
  const run = running ? runProgress(status) : html`<p class="quiet">No run is in progress.</p>`;
  const columns = [
    names('Route'),
    numbers('Limit'),
    numbers('Window'),
    numbers('Used now'),
    numbers('By others'),
    'Seen',
  ];
  const routes = [...rows.values()]
    .toSorted((a, b) => a.route.localeCompare(b.route))
    .map(({ route, limit, windowMs, used = running ? '–' : 'idle', others, at }) => [
      route,
      withCommas(limit),
      range(windowMs),
      used,
      `${Math.round(others * 100)} %`,
      at,
    ]);
  const none = 'No limit is known yet: the answers to a run show them.';
  return {
    'limits-run': unread ? html`<p class="flash bad">${unread.text}</p>` : run,
    'limits-routes': sectionsHtml([{ table: { columns, rows: routes }, none }], {}),
  };
}
