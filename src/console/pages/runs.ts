/** Lists the runs, and shows one: how it went, its changes as a diff, requests and failures. */
import { ops } from '../../domain/change.ts';
import type { RunFilter } from '../../store/tables/run-history.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import { withMemory } from '../../store/memory/memory.ts';
import { changeName, outcomeName } from '../../compose/output/format-values.ts';
import { changeOf, listedRuns } from '../../views/status/run-history.ts';
import {
  changeItem,
  changesWords,
  failuresSection,
  requestsSection,
  runSection,
  runsSection,
} from '../../views/status/run-sections.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import {
  actionForm,
  choice,
  type Choice,
  filterForm,
  liveArea,
  pageLinks,
  pagerLinks,
} from '../view/form.ts';
import { html, sectionsHtml } from '../../views/render/html.ts';
import { link, orFault, type Page, type PageContent, type PageRequest } from '../view/page.ts';
import { readerOf } from '../view/console-text.ts';
import { runProgress, stopping } from './overview.ts';
import { planForm } from './undo.ts';

const runsPerPage = 20;
/** More than any snapshot holds; a larger number would be none that SQLite takes. */
const mostRuns = 1_000_000_000;
const modes = ['full', 'fast', 'single', 'undo'] as const;
/** The stored statuses by the filter's names; a run without an end is stored as `running`. */
const statuses: Readonly<Record<string, readonly string[]>> = {
  done: ['done'],
  'some records have problems': ['rejected'],
  'some changes await approval': ['held'],
  failed: ['failed'],
  'interrupted or still running': ['interrupted', 'running'],
};

const hourMs = 3_600_000;
const hours: Readonly<Record<string, number>> = { '1 h': 1, '24 h': 24, '7 d': 168 };

const fields: readonly Choice[] = [
  { ...choice('show', 'Runs', ['all']), usual: 'with something new' },
  choice('since', 'In the last', Object.keys(hours)),
  { name: 'day', label: 'From', type: 'date' },
  choice('mode', 'Mode', modes),
  choice('status', 'Status', Object.keys(statuses)),
];

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
      isNews: query['show'] !== 'all',
    };
    const none = 'There are no such runs.';
    const { list, isMore } = await request.mirror.read(request.user, (seen) => {
      const { snapshot, now } = seen;
      const last = hours[query['since'] ?? ''];
      const from = last ? now - last * hourMs : Date.parse(query['day'] ?? '') - 1;
      const since = Number.isNaN(from) ? undefined : from;
      const page = snapshot?.runs.newest(runsPerPage + 1, { ...filter, since, offset });
      const runs = listedRuns(seen, page ?? [], 1);
      const { undoneBy } = snapshot?.runs ?? {};
      const list = runsSection(runs.slice(0, runsPerPage), { now, none, undoneBy });
      return { list, isMore: runs.length > runsPerPage };
    });
    const news = `/since?mirror=${request.mirror.config.mirror}`;
    const body = html`<p><a href="${news}">What has happened since yesterday</a></p>
      ${filterForm(request, fields)} ${sectionsHtml([list], readerOf(request))}
      ${pagerLinks(request, offset, runsPerPage, isMore)}`;
    return { title: 'Runs', body };
  },
};

const changesPerPage = 100;
/** A chunk of 5,000 changes takes up to 60 ms. */
const chunksCounted = 2;

/** The page of one run. */
export const runPage: Page = {
  path: 'runs/:id',
  show: async (request) => request.mirror.read(request.user, (seen) => runContent(request, seen)),
};

function runContent(request: PageRequest, seen: Seen): PageContent {
  const { snapshot, config, names } = seen;
  const kept = snapshot?.runs.get(request.id);
  const [run] = kept ? listedRuns(seen, [kept], chunksCounted) : [];
  if (!snapshot || !kept || !run) {
    const body = html`<p>This run is not kept any more, or there never was one with this name.</p>`;
    return { title: `Run ${request.id}`, code: 404, body };
  }
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
  const lines = changes
    // What was planned again is shown to those who ask for it.
    .filter(({ reason }) => reason !== plannedAgain || state === 'stale')
    .map(({ rule, ...change }) =>
      changeItem({ told: changeOf(change, names(change)), record: change, rule }, run),
    );
  const none = next === undefined ? 'There are no such changes.' : 'None in this part of the run.';
  const failed = orFault(() => {
    const span = { run: kept.id, from: kept.startedAt, to: kept.endedAt ?? seen.now };
    return withMemory(config.memory, ({ requests }) => requests.failedOf(span));
  });
  const channels = (config.contacts?.channels ?? []).map(({ id }) => id);
  const { contacts, templates } = run.changes;
  const states = [...Object.values(contacts), ...Object.values(templates)];
  const isAnyDone = states.some(({ acked = 0 }) => acked > 0);
  const mayUndo = isAnyDone && run.status !== 'running' && request.user.role === 'operator';
  const undoneBy = snapshot.runs.undoneBy(kept.id);
  const undone =
    undoneBy !== undefined &&
    html`<p><b>Undone</b> by ${link(request, `runs/${undoneBy}`, `run ${undoneBy}`)}.</p>`;
  const undo = html`<div class="row">
    ${planForm(request, undoneBy === undefined ? 'Undo this run' : 'Undo what is left of it')}
    <span class="quiet">First you see the plan: nothing is sent yet.</span>
  </div>`;
  const reader = readerOf(request, snapshot);
  const { status } = request.mirror.status();
  const isNow = run.status === 'running' && run.mode === status.running?.mode;
  const isStoppable = isNow && request.user.role === 'operator';
  const progress = html`<section>
    ${liveArea(request, { 'run-progress': runProgress(status) })}
    ${isStoppable && actionForm(request, { ...stopping, needsReason: true })}
  </section>`;
  const body = html`<section>${sectionsHtml([runSection(run, undefined, true)], reader)}</section>
    ${isNow && progress} ${undone} ${mayUndo && undo}
    <section>
      <h2>Changes</h2>
      <p>${changesWords(run.changes, run.status)}</p>
      ${filterForm(request, changeFields.toSpliced(1, 0, choice('channel', 'Channel', channels)))}
      ${sectionsHtml([{ lines, isList: true, none }], reader)}
      ${pageLinks(request, [
        after !== undefined && ['From the beginning', { after: undefined }],
        next !== undefined && ['Next changes', { after: `${next}` }],
      ])}
    </section>
    ${sectionsHtml([requestsSection(run), failuresSection(failed, run)], reader)}`;
  return { title: `Run ${run.run}`, body };
}

const outcomes = ['acked', 'rejected', 'stale', 'unknown', 'sent', 'planned'] as const;

const changeFields: readonly Choice[] = [
  choice('op', 'Change', ops, (op) => changeName(op, false)),
  choice('outcome', 'Outcome', outcomes, outcomeName),
  choice('kind', 'Record', ['contact', 'template'], (kind) =>
    kind === 'contact' ? 'people' : 'templates',
  ),
];
