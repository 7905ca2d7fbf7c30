/** Lists the runs, and shows one: how it went, its changes as a diff, requests and failures. */
import { withCommas } from '../../domain/values/counted.ts';
import { renderProblem } from '../../domain/errors.ts';
import { ops } from '../../domain/change.ts';
import type { RunFilter } from '../../store/tables/run-history.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import { failedOf } from '../../store/request-log/read-log.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { changeName, outcomeName } from '../../compose/output/change-words.ts';
import { fullWords } from '../../compose/output/summary-text.ts';
import {
  statusWords,
  tookWords,
  askedWords,
  changeOf,
  changeWords,
  type ListedRun,
  listedRuns,
  modeWords,
} from '../../views/status/run-history.ts';
import { ruleText } from '../../views/audit/entry-document.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { choice, type Choice, filterForm, pagerLinks, withQuery } from '../view/form.ts';
import {
  html,
  type Html,
  prose,
  timeOf,
  type Cell,
  factsTable,
  numbers,
  table,
} from '../../views/render/html.ts';
import { link, orFault, type Page, type PageRequest } from '../view/page.ts';
import { personLink } from '../view/console-text.ts';
import { planForm } from './undo.ts';

const runsPerPage = 20;
/** More than any snapshot holds; a larger number would be none that SQLite takes. */
const mostRuns = 1_000_000_000;
const modes = ['full', 'fast', 'single'] as const;
/** The stored statuses by the filter's names; a run without an end is stored as `running`. */
const statuses: Readonly<Record<string, readonly string[]>> = {
  done: ['done'],
  'some records have problems': ['rejected'],
  'some changes await approval': ['held'],
  failed: ['failed'],
  'interrupted or still running': ['interrupted', 'running'],
};

const fields = [choice('mode', 'Mode', modes), choice('status', 'Status', Object.keys(statuses))];

/** The page of all runs. */
export const runsPage: Page = {
  path: 'runs',
  nav: 'Runs',
  async show(request) {
    const { query } = request;
    const offset = Math.min(mostRuns, Math.max(0, Math.trunc(Number(query['from'])) || 0));
    const filter: RunFilter = {
      mode: modes.find((mode) => mode === query['mode']),
      statuses: statuses[query['status'] ?? ''],
    };
    const runs = await request.mirror.read(request.user, (seen) =>
      listedRuns(
        seen,
        seen.snapshot?.runs.list({ ...filter, offset, count: runsPerPage + 1 }) ?? [],
        1,
      ),
    );
    const shown = runs.slice(0, runsPerPage);
    const rows = shown.map((run) => row(request, run));
    const body = html`${filterForm(request, fields)}
    ${table(columns, rows, 'There are no such runs.')}
    ${pagerLinks(request, offset, runsPerPage, runs.length > runsPerPage)}`;
    return { title: 'Runs', body };
  },
};

const columns = ['Began', 'Mode', 'Status', numbers('Took'), numbers('Requests'), 'Changes'];

function row(request: PageRequest, run: ListedRun): Cell[] {
  const { requests, reasons } = run;
  const [reason, ...more] = reasons;
  const why = more.length > 0 ? `${reason} (and ${more.length} more)` : reason;
  const asked = askedWords(run);
  const notes = [...(asked === '' ? [] : [`asked for by ${asked}`]), ...(why ? [why] : [])];
  const note = notes.map((text) => html`<br /><small class="quiet">${text}</small>`);
  return [
    link(request, `runs/${run.run}`, timeOf(run.startedAt)),
    modeWords(run),
    html`${statusWords(run)}${note}`,
    tookWords(run),
    requests ? withCommas(requests.total) : '–',
    changesOf(run),
  ];
}

const changesPerPage = 100;
/** A chunk of 5,000 changes takes up to 60 ms. */
const chunksCounted = 2;

/** The page of one run. */
export const runPage: Page = {
  path: 'runs/:id',
  async show(request) {
    const found = await request.mirror.read(request.user, (seen) => read(request, seen));
    if (!found) {
      const body = html`<p>
        This run is not kept any more, or there never was one with this name.
      </p>`;
      return { title: `Run ${request.id}`, code: 404, body };
    }
    const { run, channels } = found;
    const { contacts, templates } = run.changes;
    const states = [...Object.values(contacts), ...Object.values(templates)];
    const isAnyDone = states.some(({ acked = 0 }) => acked > 0);
    const mayUndo = isAnyDone && run.status !== 'running' && request.user.role === 'operator';
    const undo = html`<div class="row">
      ${planForm(request, 'Undo this run')}
      <span class="quiet">First you see the plan: nothing is sent yet.</span>
    </div>`;
    const body = html`${facts(run)} ${mayUndo ? undo : ''}
      <section>
        <h2>Changes</h2>
        <p>${changesOf(run)}</p>
        ${filterForm(request, changeFields.toSpliced(1, 0, choice('channel', 'Channel', channels)))}
        ${diff(request, found)}
      </section>
      ${requestsSection(found)}`;
    return { title: `Run ${run.run}`, body };
  },
};

/** Returns the changes in words. */
function changesOf({ changes, status }: ListedRun): string {
  return changeWords(changes, { planned: unsentWords(status) });
}

function unsentWords(status: ListedRun['status']): string {
  return status === 'running' ? 'still to send' : outcomeName('planned');
}

type Found = NonNullable<ReturnType<typeof read>>;

function read(request: PageRequest, seen: Seen) {
  const { snapshot, config, names } = seen;
  const kept = snapshot?.runs.get(request.id);
  if (!snapshot || !kept) return undefined;
  const [run] = listedRuns(seen, [kept], chunksCounted);
  if (!run) return undefined;
  const { kind, op, channel: part, outcome: state, after } = request.query;
  const given = (value: string | undefined) => (value === '' ? undefined : value);
  const { changes, next } = snapshot.outcomes.ofRun(kept.id, {
    kind: given(kind),
    op: given(op),
    part: given(part),
    state: given(state),
    after: after === undefined ? undefined : Number(after),
    count: changesPerPage,
  });
  // What was planned again is shown to those who ask for it.
  const shown = changes.filter(({ reason }) => reason !== plannedAgain || state === 'stale');
  const lines = shown.map((change) => ({
    ...changeOf(change, names(change)),
    isOpen: run.status === 'running',
    rule: change.rule,
    href: change.kind === 'contact' ? personLink(request, snapshot, change.key) : undefined,
  }));
  const channels = (config.contacts?.channels ?? []).map(({ id }) => id);
  const to = kept.endedAt ?? seen.now;
  const failed = orFault(() =>
    failedOf(config.requests.path, { run: kept.id, from: kept.startedAt, to }),
  );
  return { run, lines, next, channels, failed };
}

function facts(run: ListedRun): Html {
  const { certificate, plan } = run;
  const yes = (value: boolean): string => (value ? 'yes' : 'no');
  const readings = ({ source, platform }: NonNullable<typeof certificate>): string =>
    `CRM ${yes(source)}, platform ${yes(platform)}`;
  const rows = [
    ['Mode', run.mode],
    ['Status', statusWords(run)],
    ...(askedWords(run) === '' ? [] : [['Asked for by', askedWords(run)]]),
    ...(run.undoes === undefined ? [] : [['Undoes', run.undoes]]),
    ['Began', run.startedAt],
    ['Ended', run.endedAt ?? '–'],
    ['Took', tookWords(run)],
    ...(plan === null ? [] : [['Plan', plan]]),
    ...(certificate ? [['Complete readings', readings(certificate)]] : []),
  ];
  const notes = [...fullWords(run), ...run.reasons];
  return html`<section>
    ${factsTable(rows)} ${notes.map((note) => html`<p>${prose(note)}</p>`)}
  </section>`;
}

const outcomes = ['acked', 'rejected', 'stale', 'unknown', 'sent', 'planned'] as const;

const changeFields: readonly Choice[] = [
  { name: 'op', label: 'Change', options: ops.map((op) => [op, changeName(op, false)]) },
  {
    name: 'outcome',
    label: 'Outcome',
    options: outcomes.map((state) => [state, outcomeName(state)]),
  },
  {
    name: 'kind',
    label: 'Record',
    options: [
      ['contact', 'people'],
      ['template', 'templates'],
    ],
  },
];

function diff(request: PageRequest, { lines, next }: Found): Html {
  const first = request.query['after'] === undefined;
  const link = (query: { after: string | undefined }, text: string): Html =>
    html`<a href="${withQuery(request, query)}">${text}</a>`;
  const none = next === undefined ? 'There are no such changes.' : 'None in this part of the run.';
  return html`${
      lines.length === 0
        ? html`<p class="quiet">${none}</p>`
        : html`<ul class="diff">
            ${lines.map(line)}
          </ul>`
    }
    <p class="row">
      ${first ? '' : link({ after: undefined }, 'From the beginning')}
      ${next === undefined ? '' : link({ after: `${next}` }, 'Next changes')}
    </p>`;
}

/** The sign of a change that was made, and its class in the style sheet. */
const signs: Readonly<Record<string, readonly [sign: string, style: string]>> = {
  create: ['+', 'added'],
  opt_in: ['+', 'added'],
  opt_out: ['−', 'removed'],
  delete: ['−', 'removed'],
  archive: ['−', 'removed'],
};
const replanned = ['·', 'quiet'] as const;

function line(change: Found['lines'][number]): Html {
  const { op, outcome, part, key, reason, fix, rule, approval, kind, href, isOpen } = change;
  const isDone = outcome === 'acked';
  const notDone = outcome === 'stale' ? replanned : ['!', 'refused'];
  const [sign, style] = isDone ? (signs[op] ?? ['~', 'changed']) : notDone;
  const who = href === undefined ? key : html`<a href="${href}">${key}</a>`;
  const state = outcome === 'planned' && isOpen ? unsentWords('running') : outcomeName(outcome);
  const what = isDone ? changeName(op, true) : `${state}: ${changeName(op, false)}`;
  const notes = [
    ...(reason === null ? [] : [renderProblem({ reason, fix })]),
    ...(rule === null ? [] : [ruleText(rule)]),
    ...(approval === null ? [] : [`approved${byWords(approval)}`]),
  ];
  return html`<li class="${style}">
    <b aria-hidden="true">${sign}</b> ${what}
    ${kind === 'template' ? 'template ' : ''}${who}${part === '' ? '' : ` in ${part}`}
    ${notes.map((note) => html`<small class="quiet">${note}</small>`)}
  </li>`;
}

function requestsSection({ run: { requests, ...run }, failed }: Found): Html {
  const rows = Object.entries(requests?.byRoute ?? {})
    .toSorted(([, a], [, b]) => b - a)
    .map(([route, n]) => [route, withCommas(n)]);
  return html`<section>
    <h2>Requests</h2>
    ${
      requests === null
        ? html`<p class="quiet">They are counted when the run ends.</p>`
        : html`<p>
              ${withCommas(requests.total)} requests, of which ${withCommas(requests.rateLimited)}
              were refused by a rate limit (429).
            </p>
            ${rows.length === 0 ? '' : factsTable(rows, ['Route', numbers('Requests')])}`
    }
    <h3>Errors by cause</h3>
    ${failures(failed, run.startedAt)}
  </section>`;
}

function failures(failed: Found['failed'], startedAt: string): Html {
  if (failed === undefined) return html`<p class="quiet">No requests are logged yet.</p>`;
  if ('fault' in failed) return html`<p class="quiet">${failed.fault}</p>`;
  const { since, failed: all } = failed;
  const isCut = since === undefined || since > Date.parse(startedAt) + 1_000;
  const cut = html`<p class="quiet">
    The log of the requests does not go back to the beginning of this run.
  </p>`;
  const none = html`<p class="quiet">No request failed.</p>`;
  if (all.length === 0) return isCut ? cut : none;
  return html`${isCut ? cut : ''}
    <ul>
      ${all.map(
        ({ route, status, n }) =>
          html`<li>
            ${route}: ${withCommas(n)} × ${status === null ? 'no answer' : `status ${status}`}
          </li>`,
      )}
    </ul>`;
}
