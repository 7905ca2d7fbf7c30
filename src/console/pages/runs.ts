/** Lists the runs. */
import { withCommas } from '../../domain/values/counted.ts';
import {
  statusWords,
  tookWords,
  askedWords,
  type ListedRun,
  listedRuns,
  modeWords,
} from '../../views/status/run-history.ts';
import type { RunFilter } from '../../store/tables/run-history.ts';
import { choice, filterForm, withQuery } from '../view/filter-form.ts';
import { html, type Html, linkTo, type Page, type PageRequest, timeOf } from '../view/page.ts';
import { changesOf } from './run.ts';
import { type Cell, numbers, table } from '../view/table.ts';

const perPage = 20;
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
        seen.snapshot?.runs.list({ ...filter, offset, count: perPage + 1 }) ?? [],
        1,
      ),
    );
    const shown = runs.slice(0, perPage);
    const link = (from: number, text: string): Html =>
      html`<a href="${withQuery(request, { from: from > 0 ? `${from}` : undefined })}">${text}</a>`;
    const none = html`<p class="quiet">There are no such runs.</p>`;
    const body = html`${filterForm(request, fields)}
      ${
        shown.length === 0
          ? none
          : table(
              columns,
              shown.map((run) => row(request, run)),
            )
      }
      <p class="row">
        ${offset > 0 ? link(offset - perPage, 'Newer') : ''}
        ${runs.length > perPage ? link(offset + perPage, 'Older') : ''}
      </p>`;
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
    html`<a href="${linkTo(request, `runs/${run.run}`)}">${timeOf(run.startedAt)}</a>`,
    modeWords(run),
    html`${statusWords(run)}${note}`,
    tookWords(run),
    requests ? withCommas(requests.total) : '–',
    changesOf(run),
  ];
}
