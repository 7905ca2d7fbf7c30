/** Shows the newest entries of the audit log, and verifies it. */
import {
  documentsOf,
  type EntryDocument,
  pendingDecisions,
  entryParts,
} from '../../views/audit/entry-document.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import type { AuditLog } from '../../store/audit/audit-log.ts';
import { withQuery } from '../view/filter-form.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, linkTo, type Page, type PageRequest, timeOf } from '../view/page.ts';
import { factsTable } from '../view/table.ts';

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
      return { title: 'Audit log', body: html`${none}${pendingPart(request, pending)}` };
    }
    try {
      const before = Number(request.query['before'] ?? Number.NaN);
      const end = Number.isSafeInteger(before) ? before : undefined;
      const rows = isAll
        ? log.newest(shown, end)
        : newestDecisions(log, end ?? Number.POSITIVE_INFINITY);
      const entries = rows.map(documentsOf(log));
      return { title: 'Audit log', body: body(request, entries, pending) };
    } finally {
      log.close();
    }
  },
};

function newestDecisions(log: AuditLog, before: number): ReturnType<AuditLog['decisions']> {
  const earlier = log.decisions().filter(({ seq }) => seq < before);
  return earlier.toReversed().slice(0, shown);
}

/** Returns the decisions that a run moves to the log, which then proves them. */
function pendingPart(request: PageRequest, pending: readonly EntryDocument[]): Html | '' {
  if (pending.length === 0) return '';
  return html`<ol class="timeline">
    ${pending.map((entry) => entryItem(request, entry))}
  </ol>`;
}

function body(
  request: PageRequest,
  entries: readonly EntryDocument[],
  pending: readonly EntryDocument[],
): Html {
  const last = entries.at(-1)?.seq ?? 0;
  const isWhole = request.query['show'] !== 'decisions';
  const tab = (text: string, path: string, isCurrent: boolean): Html =>
    isCurrent ? html`<b>${text}</b>` : html`<a href="${linkTo(request, path)}">${text}</a>`;
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
    ${pendingPart(request, pending)}
    ${
      entries.length + pending.length === 0
        ? html`<p class="quiet">No entry.</p>`
        : html`<ol class="timeline">
            ${entries.map((entry) => entryItem(request, entry))}
          </ol>`
    }
    ${last > 1 && entries.length === shown ? older : ''}`;
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
  const place = entry.seq > 0 ? `entry ${entry.seq}` : 'the next run moves it to the log';
  const { title, facts } = entryParts(entry, { named: true });
  const { run, at } = entry;
  const link = run
    ? html` · <a href="${linkTo(request, `runs/${run.id}`)}">run ${run.id}</a>`
    : aboutLink(request, entry);
  return html`<li>
    <p>
      <b>${decisionWords(entry) ?? title}</b>
      <small class="quiet">${timeOf(at)}, ${place}</small>${link}
    </p>
    ${
      facts.length === 0
        ? ''
        : html`<details>
            <summary>Details<span class="hidden"> of entry ${entry.seq}, ${at}</span></summary>
            ${factsTable(facts.filter((fact) => !isToldTwice(entry, fact)))}
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

/** Returns whether the sentence of a decision contains a fact. */
function isToldTwice(entry: EntryDocument, [name, text]: readonly [string, string]): boolean {
  if (decisionWords(entry) === undefined) return false;
  return name === 'by' || name === 'reason' || (name === 'command of' && text === entry['name']);
}

function aboutLink(request: PageRequest, entry: EntryDocument): Html | '' {
  const { what, about } = entry;
  if (entry.type !== 'decision') return '';
  if (what === 'undo' && typeof about === 'string')
    return html` · <a href="${linkTo(request, `runs/${about}`)}">run ${about}</a>`;
  return what === 'approve' || what === 'reject'
    ? html` · <a href="${linkTo(request, 'approvals')}">Approvals</a>`
    : '';
}
