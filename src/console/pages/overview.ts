/** Shows the state of a mirror: whether it is in sync, what needs attention, what goes on. */
import { guardNames } from '../../domain/guard-classes.ts';
import { canaryWords } from '../../engine/report/canary-text.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { range } from '../../compose/output/format-values.ts';
import type { Attention } from '../../views/status/attention.ts';
import { rowsOf, windowWords } from '../../views/status/current-status.ts';
import type { Due } from '../../views/status/mirror-health.ts';
import { tickWords } from '../../compose/queues/run-schedule.ts';
import { consoleText, withoutPlans } from '../view/console-text.ts';
import { actionForm } from '../view/form.ts';
import { liveArea, progressLine } from '../view/live-area.ts';
import {
  html,
  type Html,
  linkTo,
  type Page,
  type PageRequest,
  prose,
  timeText,
} from '../view/page.ts';
import { factsTable } from '../view/table.ts';
import { plotsSection } from './plots.ts';
import { rehearsalLink } from './rehearsal/rehearsal.ts';
import type { PageStatus, PageStatusAndNext } from '../view/page-status.ts';

/** The overview of a mirror. */
export const overviewPage: Page = {
  path: '',
  nav: 'Overview',
  async show(request) {
    const seen = await request.mirror.statusAndNext();
    const { details: below, ...pieces } = statusPieces(request, seen);
    return {
      title: seen.status.mirror,
      body: html`${liveArea(request, pieces)} ${await plotsSection(request)}
        <div id="details">${below}</div>`,
    };
  },
};

/** Returns the parts of the overview that change while it is open, by id. */
export function statusPieces(
  request: PageRequest,
  seen: PageStatusAndNext,
): Record<'state' | 'attention' | 'figures' | 'details', Html> {
  return {
    state: stateSection(request, seen),
    attention: attentionSection(request, seen),
    figures: figures(request, seen),
    details: isUnreadable(seen) ? html`` : details(seen),
  };
}

/** Returns whether the status says nothing, because the snapshot cannot be read. */
function isUnreadable({ attention }: Pick<PageStatus, 'attention'>): boolean {
  return attention.some(({ code }) => code === 'snapshot_unreadable');
}

/** The state of a mirror in a word. */
export function stateOf({ status, attention }: Pick<PageStatus, 'status' | 'attention'>): {
  kind: 'good' | 'bad' | 'busy';
  text: string;
} {
  if (status.paused && attention.every(({ code }) => code === 'paused'))
    return { kind: 'busy', text: 'Paused' };
  if (attention.length > 0) {
    const text = status.paused ? 'Paused, and needs attention' : 'Needs attention';
    return { kind: 'bad', text };
  }
  if (status.running) return { kind: 'busy', text: 'A run is in progress' };
  if (status.held.some(isDecided)) return { kind: 'busy', text: 'Approved changes await a run' };
  const problems = problemsIn(status);
  if (problems === 0) return { kind: 'good', text: 'In sync' };
  return { kind: 'good', text: `In sync, except ${counted(problems, 'record')} with a problem` };
}

/** Returns whether some of what a plan withheld is approved, and no run has sent it yet. */
function isDecided({ ready }: PageStatus['status']['held'][number]): boolean {
  return guardNames.some((of) => ready[of] > 0);
}

function problemsIn({ conflicts, rejected, invalid }: PageStatus['status']): number {
  return [conflicts, rejected, invalid].reduce(
    (sum, of) => sum + (of ? of.contacts + of.templates : 0),
    0,
  );
}

function provenWords(seen: PageStatus): Html | string {
  if (isUnreadable(seen)) return '';
  const age = seen.status.proven?.ageMs ?? null;
  if (age === null) return 'No full run has ended well yet.';
  return html`The last complete run began ${range(age)} ago.`;
}

function stateSection(request: PageRequest, seen: PageStatus): Html {
  const { status } = seen;
  const { kind, text } = stateOf(seen);
  const { running } = status;
  const progress = running
    ? html`${progressLine(status)}
      ${
        running.total === null
          ? ''
          : html`<progress
              aria-label="Progress of the run"
              max="${running.total}"
              value="${running.done}"
            ></progress>`
      }`
    : '';
  const canaries = (status.canaries ?? []).map(
    (one) => html`<p class="quiet">${prose(canaryWords(one))}.</p>`,
  );
  // Otherwise the words of a calm mirror contain it.
  const waiting = seen.attention.length > 0 ? (status.waiting ?? []) : [];
  const waits = windowWords(waiting).map(
    (words) => html`<p class="quiet">${prose(words)} (windows).</p>`,
  );
  return html`<p class="state"><span class="chip ${kind}">${text}</span> ${provenWords(seen)}</p>
    ${canaries} ${waits} ${progress}
    <div class="row">${runForms(request, seen)} ${rehearsalLink(request)}</div>`;
}

function runForms(request: PageRequest, { status }: PageStatus): Html | '' {
  if (request.user.role !== 'operator') return '';
  if (status.paused) {
    const label = 'End the pause';
    return actionForm(request, { action: 'resume', label, needsReason: 'optional' });
  }
  const { running } = status;
  const runs = html`${actionForm(request, { action: 'run-full', label: 'Run now' })}
  ${actionForm(request, { action: 'run-fast', label: 'Fast run' })}`;
  return html`${running ? '' : runs}
    <details class="inline">
      <summary>Pause</summary>
      <p class="quiet">
        No further run begins.${running ? ' The run in progress goes on to its end.' : ''}
      </p>
      ${actionForm(request, { action: 'pause', label: 'Pause', needsReason: true })}
    </details>`;
}

function calmPart(request: PageRequest, { status }: PageStatus): Html {
  const problems = problemsIn(status);
  if (problems === 0) return html`<p class="quiet">Nothing needs attention.</p>`;
  return html`<p class="quiet">
    Nothing needs attention, except
    <a href="${linkTo(request, 'problems')}">${counted(problems, 'record')} with a problem</a>.
  </p>`;
}

function attentionSection(request: PageRequest, seen: PageStatus): Html {
  const { attention } = seen;
  if (attention.length === 0) return calmPart(request, seen);
  return html`<section class="attention" aria-label="What needs attention">
    <h2>What needs attention</h2>
    <ul>
      ${attention.map(
        (one) =>
          html`<li>
            <p>${prose(withoutPlans(one.text))}</p>
            ${one.code === 'held' ? '' : html`<p class="fix">${consoleText(request, one.fix)}</p>`}
            ${remedy(request, one)}
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Returns the link or the button that mends it, if the console has one. */
function remedy(request: PageRequest, { code }: Attention): Html | '' {
  const link = (path: string, text: string): Html =>
    html`<a class="button" href="${linkTo(request, path)}">${text}</a>`;
  if (code === 'held' || code === 'opt_outs_many') return link('approvals', 'Look at the changes');
  if (code === 'opt_outs_unreadable' || code === 'opt_outs_refused')
    return link('problems', 'Look at the problems');
  if (code === 'run_failed' || code === 'run_interrupted') return link('runs', 'Look at the runs');
  if (code === 'quarantined' && request.user.role === 'operator')
    return actionForm(request, { action: 'retry', label: 'Try again', needsReason: 'optional' });
  return '';
}

function figures(request: PageRequest, seen: PageStatusAndNext): Html {
  const { status } = seen;
  const { recorded, held } = status;
  const waiting = held.reduce(
    (sum, { undecided }) => sum + guardNames.reduce((all, of) => all + undecided[of], 0),
    0,
  );
  const approved = held.reduce(
    (sum, { ready }) => sum + guardNames.reduce((all, of) => all + ready[of], 0),
    0,
  );
  const problems = problemsIn(status);
  const tile = (value: string, what: string, path: string): Html =>
    html`<a class="tile" href="${linkTo(request, path)}"><b>${value}</b> ${what}</a>`;
  return html`<div class="tiles">
    ${tile(recorded ? withCommas(recorded.contacts) : '–', 'people recorded', 'people')}
    ${tile(withCommas(waiting), 'await a decision', 'approvals')}
    ${approved > 0 ? tile(withCommas(approved), 'approved, wait for a run', 'approvals') : ''}
    ${tile(withCommas(problems), 'records with a problem', 'problems')} ${nextTile(request, seen)}
  </div>`;
}

/** Returns when the schedule is due next; nothing while no worker begins anything. */
function nextTile(request: PageRequest, { status, next }: PageStatusAndNext): Html | '' {
  if (status.paused || next.unknown !== undefined) return '';
  const [first] = next.due;
  const [day, time] = first ? timeText(first.at).split(', ') : [];
  return html`<a class="tile" href="${linkTo(request, 'runs')}"
    ><b>${time ?? '–'}</b>
    ${first ? `${day}: next ${tickName(first.run)}` : 'nothing is scheduled'}</a
  >`;
}

function tickName(tick: Due['run']): string {
  if (tick === 'sentinel') return tickWords(tick);
  return tick === 'templates' ? 'run for templates' : `${tickWords(tick)} run`;
}

function details({ status, next }: PageStatusAndNext): Html {
  const rows = rowsOf(status, next, false);
  return html`<section>
    <h2>Details</h2>
    ${factsTable(rows.map(([name = '', value = '']) => [name, prose(value)]))}
  </section>`;
}
