/** Shows everything about one person: what would happen now, what is recorded, what happened. */
import type { Key } from '../../domain/record.ts';
import { renderProblem } from '../../domain/errors.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { gates } from '../../records/contact/consent/gates.ts';
import { rules } from '../../records/contact/consent/rules.ts';
import { type PersonRecords, recordsOf } from '../../cli/dossier/person-records.ts';
import type { EntryDocument } from '../../cli/audit/entry-document.ts';
import { maskedText } from '../../cli/lookup/masked-request.ts';
import { ledgerLines } from '../../cli/lookup/person-text.ts';
import type { Seen } from '../../cli/lookup/snapshot-command.ts';
import { type ChannelOutlook, outlooksOf } from '../../cli/state/channel-outlook.ts';
import { documentOf, type RecordDocument } from '../../cli/state/record-document.ts';
import { recordSections } from '../../cli/state/record-text.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, linkTo, type Page, type PageRequest, prose } from '../view/page.ts';
import { personIn } from '../view/person-link.ts';
import { rulesTable } from '../view/rules-table.ts';
import { type TimelineParts, timelineOf } from './person-timeline.ts';

/** The page of one person. */
export const personPage: Page = {
  path: 'people/:id',
  async show(request) {
    // The page is rendered while the snapshot is open, because names are read from it.
    return request.mirror.read(request.user, (seen) => {
      const found = personOf(request, seen);
      return found ? { title: found.name, body: bodyOf(request, found) } : nobody;
    });
  },
};

/** What a page shows if its address names nobody. */
export const nobody = {
  title: 'Nobody is here',
  code: 404,
  body: html`<p>
    This address belongs to no person of this mirror. Links end when the snapshot begins anew:
    search again.
  </p>`,
};

const changesShown = 50;
const requestsShown = 40;

interface FoundPerson {
  key: Key;
  name: string;
  document: RecordDocument;
  records: PersonRecords;
  outlooks: ChannelOutlook[];
  changes: TimelineParts['changes'];
  /** Masks what the user may not see. */
  say(text: string): string;
}

function personOf(request: PageRequest, seen: Seen): FoundPerson | undefined {
  const { config, snapshot, names, now } = seen;
  const key = snapshot && personIn(snapshot, request.id);
  if (!snapshot || key === undefined) return undefined;
  const document = documentOf({ config, snapshot, names }, { kind: 'contact', key });
  const records = recordsOf({ config, snapshot, now }, { key, requests: requestsShown });
  const channels = (config.contacts?.channels ?? []).map(({ id }) => id);
  return {
    key,
    name: names({ kind: 'contact', key }),
    document,
    records,
    outlooks: outlooksOf(document, channels),
    changes: changesOf(snapshot, key),
    say: (text) => maskedText(text, names),
  };
}

function changesOf({ recordHistory }: Snapshot, key: Key): TimelineParts['changes'] {
  return recordHistory.changes('contact', key, changesShown);
}

function bodyOf(request: PageRequest, found: FoundPerson): Html {
  const { outlooks, records, document, changes, say } = found;
  return html`${records.missing.map(
      (problem) => html`<p class="flash bad">${prose(renderProblem(problem))}</p>`,
    )}
    <section>
      <h2>What would happen now</h2>
      <p class="quiet">
        As far as this mirror knows: this page has asked neither the CRM nor the platform.
      </p>
      ${outlooks.map((outlook) => outlookPart(request, found, outlook))} ${buttons(request, found)}
    </section>
    ${rulesSection(records.entries)} ${listSection(records, say)}
    ${timelineOf(request, { ...records, changes, recorded: document.recorded }, say)}
    <section>
      <h2>What is recorded</h2>
      ${recordSections(document).map(([title, lines]) => linesPart(title, lines, say))}
    </section>`;
}

function linesPart(title: string, lines: readonly string[], say: (text: string) => string): Html {
  return html`<h3>${title}</h3>
    <ul>
      ${lines.map((line) => html`<li>${prose(say(line))}</li>`)}
    </ul>`;
}

function outlookPart(request: PageRequest, found: FoundPerson, outlook: ChannelOutlook): Html {
  const { channel, recorded, next, why, needsSomebody, conflict } = outlook;
  return html`<h3>${channel}</h3>
    <p>
      <span class="chip ${needsSomebody ? 'bad' : 'good'}">${next}</span>
      The last known subscription: ${recorded}.
    </p>
    ${why.map((line) => html`<p>${prose(found.say(line))}</p>`)}
    ${conflict === undefined ? '' : resolveForms(request, found, { channel, conflict })}`;
}

/** The conflicts in which nobody is known to have opted out, so that `resolve --in` may be used. */
const mayBeIn: ReadonlySet<ProblemCause> = new Set(['own-opt-out', 'undone', 'opt-out-doubtful']);

function resolveForms(
  request: PageRequest,
  { key }: FoundPerson,
  { channel, conflict }: { channel: string; conflict: ProblemCause },
): Html | '' {
  if (request.user.role !== 'operator' || conflict === 'erased') return '';
  const sides = [
    ...(mayBeIn.has(conflict) ? [{ to: 'in', label: 'The person wants in' }] : []),
    { to: 'out', label: 'The person wants out' },
  ];
  return html`<details>
    <summary>Resolve the conflict in ${channel}</summary>
    <p class="quiet">
      The CRM and the platform are read first. Nothing is sent now: the next run does it. Name no
      address in the texts, because they are kept in the audit log.
    </p>
    ${sides.map(({ to, label }) =>
      actionForm(request, {
        action: 'resolve',
        label,
        values: { person: key, channel, to },
        needsReason: true,
        fields: html`<label
          >Evidence
          <input
            name="evidence"
            required
            maxlength="300"
            autocomplete="off"
            placeholder="a ticket, a signed form"
        /></label>`,
      }),
    )}
  </details>`;
}

function buttons(request: PageRequest, { key, document }: FoundPerson): Html {
  const isOperator = request.user.role === 'operator';
  const isRefused = document.refused.length > 0 || document.reports.some(isRejected);
  const page = (end: string, text: string): Html =>
    html`<a class="button" href="${linkTo(request, `people/${request.id}/${end}`)}">${text}</a>`;
  return html`<div class="row">
    ${isOperator ? page('now', 'Ask CRM and platform now') : ''}
    ${
      isOperator && isRefused
        ? actionForm(request, {
            action: 'retry',
            label: 'Try again',
            values: { person: key },
            needsReason: 'optional',
          })
        : ''
    }
    ${request.user.seesAddresses ? page('dossier.html', 'Download the dossier') : ''}
  </div>`;
}

function isRejected({ state }: RecordDocument['reports'][number]): boolean {
  return state === 'rejected';
}

function listSection({ listed }: PersonRecords, say: (text: string) => string): Html {
  const lines = ledgerLines({ ledger: listed });
  return html`<section>
    <h2>Do-not-contact list</h2>
    ${
      lines.length === 0
        ? html`<p class="quiet">The person is not on it.</p>`
        : html`<ul>
            ${lines.map((line) => html`<li>${say(line)}</li>`)}
          </ul>`
    }
  </section>`;
}

/** Lists all rules, and at each the channels whose last write it decided. */
function rulesSection(entries: readonly EntryDocument[]): Html {
  const last = new Map(
    entries
      .filter(({ type }) => type === 'write')
      .map((entry) => [String(entry['part']), entry] as const),
  );
  const decided = Map.groupBy(last.values(), (entry) => String(entry['rule']));
  const words = (id: string): string =>
    (decided.get(id) ?? [])
      .map(({ at, part }) => `${String(part) || 'the whole record'}, ${at}`)
      .join('; ');
  const said = (id: string): Html | '' => {
    const text = words(id);
    return text === '' ? '' : html`<strong>${text}</strong>`;
  };
  return html`<section>
    <h2>Which rule decided our last change</h2>
    <p class="quiet">
      What the person did on the platform is no change of this mirror: it stands below, in what
      happened.
    </p>
    <ul>
      ${[...decided].map(([id, writes]) => {
        const rule = [...rules, ...gates].find((one) => one.id === id);
        const channels = writes.map(({ part }) => String(part) || 'the whole record').join(', ');
        return html`<li>
          ${channels}: ${prose(rule?.asks ?? id)}
          ${rule?.row === undefined ? '' : `(rule ${rule.row})`}
        </li>`;
      })}
    </ul>
    ${decided.size === 0 ? html`<p class="quiet">The audit log has no change of this person.</p>` : ''}
    <details>
      <summary>All rules in order</summary>
      <p class="quiet">
        The first rule that matches decides about a channel; then the gates are asked. “Ask CRM and
        platform now” shows what each says today.
      </p>
      ${rulesTable('Decided the last change of', said)}
    </details>
  </section>`;
}
