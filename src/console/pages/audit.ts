/**
 * Shows the audit log: decisions and runs, the newest first, with the writes of each run in its
 * line, by user, plan and date; or all entries about one person. Verifies the log.
 */
import type { Key } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { AuditLog } from '../../store/memory/audit-log.ts';
import type { StoredEntry } from '../../store/memory/audit-entry.ts';
import { readMemory } from '../../store/memory/memory.ts';
import {
  documentsOf,
  entrySection,
  type EntryDocument,
  isBy,
  pendingDecisions,
  writtenPeople,
} from '../../views/audit/entry-document.ts';
import { awaitingWords } from '../../views/audit/log-verification.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { statusWords } from '../../views/status/run-sections.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { personIn, personLink, readerOf } from '../view/console-text.ts';
import { actionForm, filterForm, pageLinks, textField, withQuery } from '../view/form.ts';
import { link, linkTo, type Page, type PageRequest } from '../view/page.ts';
import { findPeople } from './people.ts';

const shown = 50;
const dayMs = 86_400_000;

/** The page of the audit log. */
export const auditPage: Page = {
  path: 'audit',
  nav: 'Audit log',
  show: async (request) => auditContent(request),
  async search(request, { who = '' }) {
    return request.mirror.read(request.user, async (seen) => {
      const { keys, isExact = false, none } = await findPeople(seen, who, request.user);
      const [key] = keys;
      if (!seen.snapshot || key === undefined || !isExact) {
        const why = none ?? 'Nobody has exactly this: type the whole address.';
        return auditContent(request, html`<p class="flash">${prose(why)}</p>`);
      }
      // The link contains the person's key in encrypted form.
      const person = personLink(request, seen.snapshot, key).split('/').at(-1);
      return { to: withQuery({ ...request, query: {} }, { person }) };
    });
  },
};

const fields = [
  {
    name: 'show',
    label: 'Entries',
    options: [['decisions', 'decisions']],
    usual: 'decisions and runs',
  },
  { name: 'by', label: 'User' },
  { name: 'plan', label: 'Hash of a plan' },
  { name: 'from', label: 'From', type: 'date' },
  { name: 'to', label: 'To', type: 'date' },
] as const;

async function auditContent(request: PageRequest, found: Html | '' = '') {
  const body = await request.mirror.read(request.user, (seen) => {
    const { config } = request.mirror;
    const memory = readMemory(config.memory);
    try {
      return html`<p>
          Every write, every decision and every erasure, with who asked for it. The log is chained
          by hashes and signed: a changed, missing or reordered entry is found.
        </p>
        <div class="row">
          ${link(request, 'audit', 'All entries')} <a href="/audit">The logs of all mirrors</a>
          ${actionForm(request, { action: 'verify', label: 'Verify the whole log' })}
        </div>
        ${filterForm(request, fields)}
        <form class="action" method="post" action="${linkTo(request, 'audit')}">
          ${textField('Person: address, CRM id or hash', { name: 'who' })}
          <button class="second">Find</button>
        </form>
        <div role="status">${found}</div>
        ${memory ? entriesOf(request, seen, memory.log) : noLog} `;
    } finally {
      memory?.close();
    }
  });
  return { title: 'Audit log', body };
}

const noLog = html`<p class="quiet">There is none yet. The first run that writes begins it.</p>`;

function entriesOf(request: PageRequest, { snapshot, names: known }: Seen, log: AuditLog): Html {
  const { query } = request;
  const before = Number(query['before'] ?? Number.NaN);
  const end = Number.isSafeInteger(before) ? before : Number.MAX_SAFE_INTEGER;
  const dayOf = (name: string) => {
    const at = Date.parse(query[name] ?? '');
    return Number.isNaN(at) ? undefined : at;
  };
  const given = (name: string) => query[name]?.trim() || undefined;
  const [by, plan, from, to] = [given('by'), given('plan'), dayOf('from'), dayOf('to')];
  const key = snapshot && personIn(snapshot, query['person'] ?? '');
  const person = key === undefined ? undefined : log.people.find(key);
  const type = query['show'] === 'decisions' ? 'decision' : undefined;
  const which = { by, plan, from, to: to && to + dayMs, before: end, count: shown + 1 };
  const isAll = type === undefined && by === undefined && plan === undefined;
  const ofRuns = log.writesOfRuns(plan);
  const rows =
    key === undefined
      ? [
          ...log.noWrites({ ...which, type, runs: ofRuns.runs }),
          ...(isAll ? log.loneWrites(which) : []),
        ]
      : (person ? log.about(person.id) : []).filter(({ seq }) => seq < end);
  rows.sort((one, other) => other.seq - one.seq);
  const documentOf = documentsOf(log);
  const reader = readerOf(request, snapshot);
  const item = (entry: EntryDocument, more: Html | '' = covered(entry), key?: Key) => {
    const record = { kind: 'contact', key: key ?? '' } as const;
    const who = key === undefined ? undefined : { record, name: known(record) };
    return html`<li>
      ${sectionsHtml([entrySection(entry, { isNamed: true, who })], reader)} ${more}
    </li>`;
  };
  // A decision names no people: its plan does, and so do the writes that it approved.
  const covered = ({ type, what, about, plan: whole = about }: EntryDocument): Html | '' => {
    if (type !== 'decision' || typeof about !== 'string' || typeof whole !== 'string') return '';
    const isDone = what === 'approve' && plan === undefined;
    const isKept = /^(approve|reject)$/.test(String(what)) && snapshot?.holds.get(whole);
    return html`${isDone && link(request, `audit?plan=${about}`, 'The people: what was sent')}
    ${isKept && link(request, `approvals/${whole}`, 'The people: all changes of the plan')}`;
  };
  const isAbout = ({ about, plan: whole }: EntryDocument) => [about, whole].includes(plan);
  // They have no place among the others before a run moves them to the log.
  const waiting = snapshot && end === Number.MAX_SAFE_INTEGER && key === undefined;
  const pending = (waiting ? pendingDecisions(snapshot, shown) : []).filter((entry) => {
    const at = Date.parse(entry.at);
    const isThen = at >= (from ?? 0) && at < (to ?? Number.MAX_SAFE_INTEGER) + dayMs;
    return isThen && (!by || isBy(entry, by)) && (!plan || isAbout(entry));
  });
  const awaiting = waiting ? snapshot.unaudited.count() : 0;
  const listed = rows.slice(0, shown);
  const last = listed.at(-1)?.seq ?? 0;
  const none = html`<p class="quiet">No entry.</p>`;
  const who = key === undefined ? '' : known({ kind: 'contact', key });
  return html`${
    who === '' || !snapshot
      ? ''
      : html`<p>
          Entries about <a href="${personLink(request, snapshot, key ?? '')}">${who}</a> only.
        </p>`
  }
  ${awaiting > 0 && html`<p class="quiet">${awaitingWords(awaiting)}.</p>`}
  ${
    listed.length + pending.length === 0
      ? none
      : html`<ol class="timeline">
          ${pending.map((entry) => item(entry))}
          ${listed.map((row) => {
            const entry = documentOf(row);
            if (entry.type !== 'run') return item(entry);
            const writes = writesOf(request, ofRuns, row.seq, (all) => {
              const about = { run: String(entry['id']), writes: all };
              const people = snapshot && writtenPeople(snapshot, log, about);
              return all.map((one) => {
                const document = documentOf(one);
                return item(document, '', people?.get(document.person ?? ''));
              });
            });
            // The log says only that the run began.
            const run = snapshot?.runs.get(String(entry['id']));
            const ended = run && statusWords({ ...run, only: null });
            return item(entry, html`<small class="quiet">${ended}</small> ${writes}`);
          })}
        </ol>`
  }
  ${pageLinks(request, [rows.length > shown && ['Older entries', { before: `${last}` }]])}`;
}

/** Returns the line of the writes of a run, or of those that a plan approved, which may unfold. */
function writesOf(
  request: PageRequest,
  all: ReturnType<AuditLog['writesOfRuns']>,
  run: number,
  show: (rows: readonly StoredEntry[]) => Html[],
) {
  const n = all.count(run);
  if (n === 0) return '';
  const { open, after } = request.query;
  const id = `writes-${run}`;
  const words = counted(n, 'write');
  if (open !== `${run}`) {
    const href = withQuery(request, { open: `${run}`, after: undefined });
    return html`<p><a id="${id}" href="${href}#${id}">${words}</a></p>`;
  }
  const rows = all.after(run, Math.trunc(Number(after)) || 0, shown + 1);
  const next = rows.length > shown && { after: `${rows[shown - 1]?.seq}` };
  return html`<details open id="${id}">
    <summary>${words}</summary>
    <ol class="timeline">
      ${show(rows.slice(0, shown))}
    </ol>
    ${pageLinks(request, [next && ['Next writes', next]])}
  </details>`;
}
