/** Shows one run: how it went, its changes as a diff, its requests and what failed. */
import { renderProblem } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { ops } from '../../domain/change.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import { ruleText } from '../../views/audit/entry-document.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { changeName, outcomeName } from '../../compose/output/change-words.ts';
import { fullWords } from '../../compose/output/summary-text.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import {
  statusWords,
  tookWords,
  askedWords,
  changeOf,
  changeWords,
  type ListedRun,
  listedRuns,
  type ToldChange,
} from '../../views/status/run-history.ts';
import { failedOf } from '../../store/request-log/read-log.ts';
import { orFault } from '../view/expected-error.ts';
import { choice, type Choice, filterForm, withQuery } from '../view/filter-form.ts';
import { html, type Html, type Page, type PageRequest, prose } from '../view/page.ts';
import { personLink } from '../view/person-link.ts';
import { factsTable, numbers } from '../view/table.ts';
import { planForm } from './undo/undo.ts';

const perPage = 100;
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
    const body = html`${facts(run)} ${undoPart(request, found)}
      <section>
        <h2>Changes</h2>
        <p>${changesOf(run)}</p>
        ${filterForm(request, filters(channels))} ${diff(request, found)}
      </section>
      ${requestsSection(found)}`;
    return { title: `Run ${run.run}`, body };
  },
};

/** Returns the changes in words. */
export function changesOf({ changes, status }: ListedRun): string {
  return changeWords(changes, { planned: unsentWords(status) });
}

function unsentWords(status: ListedRun['status']): string {
  return status === 'running' ? 'still to send' : outcomeName('planned');
}

interface Line extends ToldChange {
  /** Whether the run is in progress. */
  isOpen: boolean;
  rule: string | null;
  /** The address of the person's page; undefined for a template. */
  href: string | undefined;
}

interface Found {
  run: ListedRun;
  lines: Line[];
  next: number | undefined;
  channels: readonly string[];
  failed: Failed;
}

type Failed = ReturnType<typeof failedOf> | { fault: string };

function read(request: PageRequest, seen: Seen): Found | undefined {
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
    count: perPage,
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
  const rows = [
    ['Mode', run.mode],
    ['Status', statusWords(run)],
    ...(askedWords(run) === '' ? [] : [['Asked for by', askedWords(run)]]),
    ...(run.undoes === undefined ? [] : [['Undoes', run.undoes]]),
    ['Began', run.startedAt],
    ['Ended', run.endedAt ?? '–'],
    ['Took', tookWords(run)],
    ...(plan === null ? [] : [['Plan', plan]]),
    ...(certificate
      ? [
          [
            'Complete readings',
            `CRM ${yes(certificate.source)}, platform ${yes(certificate.platform)}`,
          ],
        ]
      : []),
  ];
  const notes = [...fullWords(run), ...run.reasons];
  return html`<section>
    ${factsTable(rows)} ${notes.map((note) => html`<p>${prose(note)}</p>`)}
  </section>`;
}

/** Returns the way to undo the run, for operators: first a plan is made. */
function undoPart(request: PageRequest, { run }: Found): Html | '' {
  const { contacts, templates } = run.changes;
  const states = [...Object.values(contacts), ...Object.values(templates)];
  const isAnyDone = states.some(({ acked = 0 }) => acked > 0);
  const isPossible = isAnyDone && run.status !== 'running' && request.user.role === 'operator';
  if (!isPossible) return '';
  return html`<div class="row">
    ${planForm(request, 'Undo this run')}
    <span class="quiet">First you see the plan: nothing is sent yet.</span>
  </div>`;
}

const outcomes = ['acked', 'rejected', 'stale', 'unknown', 'sent', 'planned'] as const;

function filters(channels: readonly string[]): Choice[] {
  return [
    { name: 'op', label: 'Change', options: ops.map((op) => [op, changeName(op, false)]) },
    choice('channel', 'Channel', channels),
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
}

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

function line(change: Line): Html {
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
  const counts = Object.entries(requests?.byRoute ?? {}).toSorted(([, a], [, b]) => b - a);
  return html`<section>
    <h2>Requests</h2>
    ${
      requests === null
        ? html`<p class="quiet">They are counted when the run ends.</p>`
        : html`<p>
              ${withCommas(requests.total)} requests, of which ${withCommas(requests.rateLimited)}
              were refused by a rate limit (429).
            </p>
            ${counts.length === 0 ? '' : routes(counts)}`
    }
    <h3>Errors by cause</h3>
    ${failures(failed, run.startedAt)}
  </section>`;
}

function routes(counts: readonly (readonly [route: string, n: number])[]): Html {
  const rows = counts.map(([route, n]) => [route, withCommas(n)]);
  return factsTable(rows, ['Route', numbers('Requests')]);
}

function failures(failed: Failed, startedAt: string): Html {
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
