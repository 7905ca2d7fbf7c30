/** Shows the newest entries of the audit log, and verifies it. */
import {
  documentsOf,
  type EntryDocument,
  pendingDecisions,
} from '../../cli/audit/entry-document.ts';
import { entryParts } from '../../cli/audit/entry-text.ts';
import { auditLogOf } from '../../cli/compose/audit-trail.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import { withQuery } from '../view/filter-form.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, linkTo, type Page, type PageRequest } from '../view/page.ts';
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
      return { title: 'Audit log', body: html`${none}${pendingPart(pending)}` };
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
function pendingPart(pending: readonly EntryDocument[]): Html | '' {
  if (pending.length === 0) return '';
  return html`<ol class="timeline">
    ${pending.map(entryItem)}
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
    ${pendingPart(pending)}
    ${
      entries.length + pending.length === 0
        ? html`<p class="quiet">No entry.</p>`
        : html`<ol class="timeline">
            ${entries.map(entryItem)}
          </ol>`
    }
    ${last > 1 && entries.length === shown ? older : ''}`;
}

function entryItem(entry: EntryDocument): Html {
  const place =
    entry.seq > 0 ? `entry ${entry.seq}` : 'not in the log yet: the next run moves it there';
  const { title, facts } = entryParts(entry, { named: true });
  return html`<li>
    <p><b>${title}</b> <small class="quiet">${entry.at}, ${place}</small></p>
    ${factsTable(facts)}
  </li>`;
}
