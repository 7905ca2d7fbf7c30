/** Shows the newest entries of the audit log, and verifies it. */
import { readMemory } from '../../store/memory/memory.ts';
import {
  documentsOf,
  type EntryDocument,
  pendingDecisions,
  entrySection,
} from '../../views/audit/entry-document.ts';
import { readerOf } from '../view/console-text.ts';
import { actionForm, pageLinks } from '../view/form.ts';
import { html, type Html, sectionsHtml } from '../../views/render/html.ts';
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
    const memory = readMemory(request.mirror.config.memory);
    if (!memory) {
      const none = html`<p class="quiet">
        There is none yet. The first run that writes begins it.
      </p>`;
      return { title: 'Audit log', body: html`${none}${timeline(request, pending)}` };
    }
    const { log } = memory;
    try {
      const before = Number(request.query['before'] ?? Number.NaN);
      const end = Number.isSafeInteger(before) ? before : Number.MAX_SAFE_INTEGER;
      const decisions = () => log.decisions().filter(({ seq }) => seq < end);
      const rows = isAll ? log.newest(end, shown) : decisions().toReversed().slice(0, shown);
      const entries = rows.map(documentsOf(log));
      return { title: 'Audit log', body: body(request, entries, pending) };
    } finally {
      memory.close();
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
  const older = last > 1 && entries.length === shown;
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
    ${pageLinks(request, [older && ['Older entries', { before: `${last}` }]])}`;
}

function timeline(request: PageRequest, entries: readonly EntryDocument[]): Html | '' {
  if (entries.length === 0) return '';
  const reader = readerOf(request);
  return html`<ol class="timeline">
    ${entries.map(
      (entry) => html`<li>${sectionsHtml([entrySection(entry, { isNamed: true })], reader)}</li>`,
    )}
  </ol>`;
}
