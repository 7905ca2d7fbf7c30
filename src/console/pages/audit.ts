/** Shows the newest entries of the audit log, and verifies it. */
import { auditLogOf } from '../../compose/audit-trail.ts';
import {
  documentsOf,
  type EntryDocument,
  pendingDecisions,
  entryParts,
} from '../../views/audit/entry-document.ts';
import { actionForm, withQuery } from '../view/form.ts';
import { html, type Html, timeOf, factsTable } from '../../views/render/html.ts';
import { link, type Page, type PageRequest } from '../view/page.ts';

const shown = 50;

/** The page of the audit log. */
export const auditPage: Page = {
  path: 'audit',
  nav: 'Audit log',
  show: async (request) => {
    const isAll = request.query['show'] !== 'decisions';
    const isFirst = request.query['before'] === undefined;
    const pending = await request.mirror.read(request.user, ({ snapshot }) =>
      snapshot && isFirst ? pendingDecisions(snapshot, shown) : [],
    );
    const log = auditLogOf(request.mirror.config);
    if (!log) {
      const none = html`<p class="quiet">
        There is none yet. The first run that writes begins it.
      </p>`;
      return { title: 'Audit log', body: html`${none}${timeline(request, pending)}` };
    }
    try {
      const before = Number(request.query['before'] ?? Number.NaN);
      const end = Number.isSafeInteger(before) ? before : undefined;
      const decisions = () =>
        log.decisions().filter(({ seq }) => seq < (end ?? Number.POSITIVE_INFINITY));
      const rows = isAll ? log.newest(shown, end) : decisions().toReversed().slice(0, shown);
      const entries = rows.map(documentsOf(log));
      return { title: 'Audit log', body: body(request, entries, pending) };
    } finally {
      log.close();
    }
  },
};

function body(
  request: PageRequest,
  entries: readonly EntryDocument[],
  pending: readonly EntryDocument[],
): Html {
  const last = entries.at(-1)?.seq ?? 0;
  const isWhole = request.query['show'] !== 'decisions';
  const tab = (text: string, path: string, isCurrent: boolean): Html =>
    isCurrent ? html`<b>${text}</b>` : link(request, path, text);
  const older = html`<p>
    <a class="button" href="${withQuery(request, { before: `${last}` })}">Older entries</a>
  </p>`;
  return html`<p>
      Every write, every decision and every erasure, with who asked for it. The log is chained by
      hashes and signed: a changed, missing or reordered entry is found.
    </p>
    <div class="row">
      ${tab('All entries', 'audit', isWhole)} ${tab('Decisions', 'audit?show=decisions', !isWhole)}
      ${actionForm(request, { action: 'verify', label: 'Verify the whole log' })}
    </div>
    ${timeline(request, pending)} ${timeline(request, entries)}
    ${entries.length + pending.length === 0 ? html`<p class="quiet">No entry.</p>` : ''}
    ${last > 1 && entries.length === shown ? older : ''}`;
}

function timeline(request: PageRequest, entries: readonly EntryDocument[]): Html | '' {
  if (entries.length === 0) return '';
  return html`<ol class="timeline">
    ${entries.map((entry) => entryItem(request, entry))}
  </ol>`;
}

/** What an operator has done, by the name of the decision in the log. */
const decided: Readonly<Record<string, string>> = {
  approve: 'approved changes',
  reject: 'rejected changes',
  undo: 'undid a run',
  pause: 'paused the mirror',
  resume: 'ended the pause',
  retry: 'had refused changes tried again',
  resolve: 'resolved a conflict',
  allow: 'released a person',
  'state reset': 'had a person read anew',
};

function entryItem(request: PageRequest, entry: EntryDocument): Html {
  const { seq, run, at, type, what, about, name: operator } = entry;
  const place = seq > 0 ? `entry ${seq}` : 'the next run moves it to the log';
  const { title, facts } = entryParts(entry, { named: true });
  const sentence = decisionWords(entry);
  // The sentence of a decision contains these facts.
  const isIn = ([name, text]: readonly [string, string]): boolean =>
    name === 'by' || name === 'reason' || (name === 'command of' && text === operator);
  const others = sentence === undefined ? facts : facts.filter((fact) => !isIn(fact));
  const undone = type === 'decision' && what === 'undo' && typeof about === 'string' ? about : '';
  const id = run?.id ?? undone;
  const isOfPlan = type === 'decision' && (what === 'approve' || what === 'reject');
  const planLink = isOfPlan ? html` · ${link(request, 'approvals', 'Approvals')}` : '';
  return html`<li>
    <p>
      <b>${sentence ?? title}</b>
      <small class="quiet">${timeOf(at)}, ${place}</small
      >${id === '' ? planLink : html` · ${link(request, `runs/${id}`, `run ${id}`)}`}
    </p>
    ${
      facts.length === 0
        ? ''
        : html`<details>
            <summary>Details<span class="hidden"> of entry ${seq}, ${at}</span></summary>
            ${factsTable(others)}
          </details>`
    }
  </li>`;
}

/** Returns a decision as a sentence: anna approved changes: the campaign of June. */
function decisionWords({ type, ...entry }: EntryDocument): string | undefined {
  const { what, name, reason } = entry;
  const words = type === 'decision' && typeof what === 'string' ? decided[what] : undefined;
  if (words === undefined) return undefined;
  const who = typeof name === 'string' ? name : 'somebody';
  return `${who} ${words}${typeof reason === 'string' ? `: ${reason}` : ''}`;
}
