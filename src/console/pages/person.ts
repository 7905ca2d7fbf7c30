/**
 * Shows everything about one person: what would happen now, what an operator can do, which rule
 * decided, what happened, newest first (writes, decisions, changes and requests), and what is
 * recorded.
 */
import { renderProblem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { gates } from '../../records/contact/consent/gates.ts';
import { rules } from '../../records/contact/consent/rules.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { KeptChange } from '../../store/tables/run-history.ts';
import { approvalOf, approvalWords, byWords } from '../../compose/output/decision-words.ts';
import { maskedText } from '../../views/lookup/person-names.ts';
import { changeName, outcomeName } from '../../compose/output/change-words.ts';
import { instant } from '../../compose/output/format-values.ts';
import { visibleLine } from '../../compose/output/visible-text.ts';
import { type PersonRecords, recordsOf } from '../../views/dossier/person-records.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { tellRun } from '../../views/status/run-history.ts';
import {
  documentOf,
  type RecordDocument,
  recordSections,
} from '../../views/state/record-document.ts';
import { successorsOf, whyGone } from '../../views/lookup/missing-people.ts';
import { type EntryDocument, entryParts } from '../../views/audit/entry-document.ts';
import {
  channelName,
  consoleText,
  personIn,
  titledChannel,
  withChannelNames,
} from '../view/console-text.ts';
import {
  html,
  type Html,
  prose,
  timeOf,
  type Cell,
  numbers,
  table,
  sectionsHtml,
} from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';
import { actionForm, askForm } from '../view/form.ts';
import {
  type AnswerFacts,
  answerOf,
  between,
  type ChannelOutlook,
  heldOf,
  type HeldOutlook,
  outlooksOf,
  whereaboutsOf,
} from './person-channels.ts';

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
const kind = 'contact';

type FoundPerson = NonNullable<ReturnType<typeof personOf>>;

function personOf(request: PageRequest, seen: Seen) {
  const { config, snapshot, names, now } = seen;
  const key = snapshot && personIn(snapshot, request.id);
  if (!snapshot || key === undefined) return undefined;
  const document = withLastReading(
    snapshot,
    documentOf({ config, snapshot, names }, { kind, key }),
  );
  const records = recordsOf({ config, snapshot, now }, { key, requests: requestsShown });
  const channels = (config.contacts?.channels ?? []).map(({ id }) => id);
  const movedTo = successorsOf(snapshot, key).map((next) => names({ kind, key: next }));
  const gone = whyGone(document, movedTo);
  const held = heldOf(snapshot, seen, { key, document, whyGone: gone });
  return {
    key,
    name: names({ kind, key }),
    /** What awaits approval there does not include what is approved and waits for a run. */
    document: withoutApproved(document, held),
    approved: held.filter(({ is }) => is === 'approved'),
    records,
    answers: { document, entries: records.entries, listed: records.listed, movedTo },
    outlooks: outlooksOf({ document, held }, channels),
    changes: snapshot.recordHistory.changes(kind, key, changesShown),
    /** Names channels, and masks what the user may not see. */
    say: (text: string): string => withChannelNames(request, maskedText(text, names)),
    mask: (text: string): string => maskedText(text, names),
  };
}

function bodyOf(request: PageRequest, found: FoundPerson): Html {
  const { outlooks, records, document, approved, say, answers } = found;
  const where = whereaboutsOf(answers);
  const approvedLines = approved.map(({ channel, what, by, reason }) => {
    const place = channel === '' ? '' : `${channel}: `;
    return `${place}${what}; approved${byWords({ by, reason })}, waits for a run`;
  });
  return html`${records.missing.map(
      (problem) => html`<p class="flash bad">${prose(renderProblem(problem))}</p>`,
    )}
    <section>
      <h2>Now</h2>
      ${where === undefined ? '' : html`<p><strong>${prose(say(where))}</strong></p>`}
      ${outlooks.map((outlook) => channelPart(request, found, outlook))}
      <p class="quiet">
        As far as this mirror knows: this page has asked neither the CRM nor the platform.
      </p>
      ${personButtons(request, found)}
    </section>
    ${rulesSection(request, answers)} ${listSection(request, records, say)}
    ${timelineOf(request, found)}
    <section>
      <h2>What is recorded</h2>
      ${sectionsHtml(
        [
          ...recordSections(document),
          { title: 'Approved, waits for a run', lines: approvedLines, isList: true },
        ],
        { words: (text) => prose(say(text)) },
        3,
      )}
    </section>`;
}

/** Leaves out what is approved, unless another change of the guard and channel is not. */
function withoutApproved(document: RecordDocument, held: readonly HeldOutlook[]): RecordDocument {
  const awaitingApproval = document.awaitingApproval.filter(({ guard, channel }) => {
    const mine = held.filter(
      (one) => one.guard === guard && (channel === null || one.channel === channel),
    );
    return mine.length === 0 || mine.some(({ is }) => is !== 'approved');
  });
  return { ...document, awaitingApproval };
}

function channelPart(request: PageRequest, found: FoundPerson, outlook: ChannelOutlook): Html {
  const { channel, next, is, why, conflict, isHeld } = outlook;
  const answer = answerOf(found.answers, channel);
  const words = answer.isSubscribed ? 'subscribed' : 'not subscribed';
  return html`<div class="answer">
    <p>
      <strong>${titledChannel(request, channel)}: ${words}.</strong> ${prose(found.say(answer.why))}
    </p>
    <p><span class="chip ${is}">${prose(found.say(next))}</span></p>
    ${why.map((line) => html`<p>${consoleText(request, found.say(line))}</p>`)}
    ${isHeld ? html`<p><a href="${linkTo(request, 'approvals')}">Approvals</a></p>` : ''}
    ${conflict === undefined ? '' : resolveForms(request, found.key, { channel, conflict })}
  </div>`;
}

/** Says that a full run has seen the contact since anything was recorded of it, if one has. */
function withLastReading({ runs }: Snapshot, document: RecordDocument): RecordDocument {
  const { recorded } = document;
  if (!recorded || recorded.id === null) return document;
  const statuses = ['done', 'rejected', 'held'];
  const [read] = runs.list({ mode: 'full', statuses, count: 1, offset: 0 });
  const told = read && tellRun(read, () => false);
  if (!told?.certificate?.platform || told.only === 'templates') return document;
  const at = told.startedAt;
  if (at <= (recorded.seenAt ?? '')) return document;
  return { ...document, recorded: { ...recorded, seenAt: at } };
}

/** Causes on the do-not-contact list whose names are no words. */
const listWords: Readonly<Record<string, string>> = {
  opt_out: 'opt-out',
  doubtful: 'doubtful opt-out',
  vanished: 'disappeared from the platform',
  operator: 'opt-out by an operator',
  unsubscribed: 'left all mail',
  complaint: 'complained about mail',
  erasure: 'erased on request',
};

function listSection(
  request: PageRequest,
  { listed }: PersonRecords,
  say: (text: string) => string,
): Html {
  const lines = listed.map(({ cause, channel, through, ...when }) => {
    const where = channel === '*' ? '' : ` of ${channelName(request, channel)}`;
    const how = through === 'id' ? ', by the CRM id' : '';
    return `${listWords[cause] ?? cause}${where}, ${between(when)}${how}`;
  });
  return html`<section>
    <h2>Do-not-contact list</h2>
    ${
      lines.length === 0
        ? html`<p class="quiet">The person is not on it.</p>`
        : html`<ul>
            ${lines.map((line) => html`<li>${prose(say(line))}</li>`)}
          </ul>`
    }
  </section>`;
}

/** The conflicts in which nobody is known to have opted out, so that `resolve --in` may be used. */
const mayBeIn: ReadonlySet<ProblemCause> = new Set(['own-opt-out', 'undone', 'opt-out-doubtful']);

const onPlatform = 'the person opted out on the platform, and only the person can come back';

/** Why an operator cannot say that the person wants in, where that is not what the person did. */
const notIn: Readonly<Partial<Record<ProblemCause, string>>> = {
  'several-contacts': 'several contacts share the address: delete all but one on the platform',
  'records-contradict': 'the records in the CRM contradict each other: merge them there',
  renamed: 'the two sides have different addresses: make them equal first',
  'renamed-claimed': 'another record of the CRM has the address: correct that one first',
  vanished: 'the contact is no longer on the platform, and not by this mirror',
};

/** Returns the form that resolves a conflict; '' for those who may not. */
function resolveForms(
  request: PageRequest,
  key: Key,
  { channel, conflict }: { channel: string; conflict: ProblemCause },
): Html | '' {
  if (request.user.role !== 'operator' || conflict === 'erased') return '';
  const isIn = mayBeIn.has(conflict);
  const missing = isIn
    ? ''
    : html`<p class="quiet">
        “The person wants in” is not offered: ${notIn[conflict] ?? onPlatform}.
      </p>`;
  return html`<details>
    <summary>Resolve the conflict in ${channelName(request, channel)}</summary>
    <p class="quiet">
      The CRM and the platform are read first. Nothing is sent now: the next run does it. Name no
      address in the texts, because they are kept in the audit log.
    </p>
    ${missing}
    ${actionForm(request, {
      action: 'resolve',
      label: isIn ? 'The person wants in' : 'The person wants out',
      sends: { name: 'to', value: isIn ? 'in' : 'out' },
      ...(isIn
        ? { second: { label: 'The person wants out', sends: { name: 'to', value: 'out' } } }
        : {}),
      values: { person: key, channel },
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
    })}
  </details>`;
}

const questions = {
  now: { end: 'now', label: 'Ask CRM and platform now' },
  dossier: { end: 'dossier.html', label: 'Download the dossier' },
} as const;

/** Returns the form with one of these buttons. */
export function questionForm(request: PageRequest, what: keyof typeof questions): Html {
  const { end, label } = questions[what];
  return askForm(request, { path: `people/${request.id}/${end}`, label });
}

function personButtons(request: PageRequest, { key, document }: FoundPerson): Html {
  const isOperator = request.user.role === 'operator';
  const isRefused =
    document.refused.length > 0 || document.reports.some(({ state }) => state === 'rejected');
  return html`<div class="row">
    ${isOperator ? questionForm(request, 'now') : ''}
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
    ${request.user.seesAddresses ? questionForm(request, 'dossier') : ''}
  </div>`;
}

const anyGone = 'missing from the CRM, flagged as deleted, or out of scope';

/** Returns the words of a rule; `gone` says which of the ways to be gone from the CRM applies. */
export function ruleWords(id: string, gone: string | undefined): string {
  const rule = [...rules, ...gates].find((one) => one.id === id);
  const asks = rule?.asks ?? id;
  return gone === undefined ? asks : asks.replace(anyGone, gone);
}

/** Says which rule decided the last change of each channel; all rules are folded. */
function rulesSection(request: PageRequest, { entries, movedTo }: AnswerFacts): Html {
  const last = new Map(
    entries
      .filter(({ type }) => type === 'write')
      .map((entry) => [String(entry['part']), entry] as const),
  );
  const decided = Map.groupBy(last.values(), (entry) => String(entry['rule']));
  const where = ({ part }: EntryDocument): string =>
    part === '' ? 'the whole record' : channelName(request, String(part));
  const said = (id: string): Html | '' => {
    const writes = decided.get(id) ?? [];
    if (writes.length === 0) return '';
    return html`<strong
      >${writes.map((write) => html`${where(write)}, ${timeOf(write.at)} `)}</strong
    >`;
  };
  // How a person is gone from the CRM, as a write states it.
  const goneIn = ({ says }: EntryDocument): string | undefined => {
    if (movedTo.length > 0 && says === 'gone') {
      return `with another address in the CRM (${movedTo.join(', ')})`;
    }
    if (says === 'gone') return 'missing from the CRM';
    return says === 'deleted' ? 'marked as deleted in the CRM' : undefined;
  };
  return html`<section>
    <h2>Which rule decided our last change</h2>
    <p class="quiet">
      What the person did on the platform is no change of this mirror: it stands below, in what
      happened.
    </p>
    <ul>
      ${[...last.values()].map((write) => {
        const id = String(write['rule']);
        const rule = rules.find((one) => one.id === id);
        return html`<li>
          <strong>${where(write)}</strong>, ${timeOf(write.at)}:
          ${prose(ruleWords(id, goneIn(write)))}
          ${rule === undefined ? '' : html`<small class="quiet">(rule ${rule.row})</small>`}
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

/** Returns every rule and gate in order. `said` fills the last column, by the id of a rule. */
export function rulesTable(last: string, said: (id: string) => Cell): Html {
  return table(
    [numbers('No.'), 'It matches if', last],
    [...rules, ...gates].map(({ id, row, asks }) => [row ?? '', prose(asks), said(id)]),
  );
}

interface Happened {
  /** In UTC. */
  at: string;
  title: string;
  facts: readonly (readonly [name: string, text: string])[];
  /** The id of the run that did it. */
  run: string | null;
  /** Long texts, shown on demand. */
  texts: readonly (readonly [name: string, text: string])[];
}

const itemsShown = 60;
const textShown = 600;

/** Returns the timeline, in which what the user may not see is masked. */
function timelineOf(request: PageRequest, found: FoundPerson): Html {
  const { changes, document, records } = found;
  const { entries, requests } = records;
  const nameOf = (channel: string): string => channelName(request, channel);
  const named = (entry: EntryDocument): EntryDocument =>
    typeof entry['part'] === 'string' ? { ...entry, part: nameOf(entry['part']) } : entry;
  const idOf = (...parts: unknown[]): string => JSON.stringify(parts);
  const written = new Set(entries.map(({ run, op, part }) => idOf(run?.id, op, part)));
  const all = [
    ...entries.map((entry) => ofEntry(named(entry))),
    // The audit log has no write of some changes, such as of one that was never sent.
    ...changes
      .filter(({ run, op, part }) => !written.has(idOf(run, op, part)))
      .map((change) => ofChange({ ...change, part: nameOf(change.part) })),
    ...requests.map(ofRequest),
    ...ofPlatform(document.recorded, nameOf),
  ].toSorted((a, b) => b.at.localeCompare(a.at));
  const more = all.length - itemsShown;
  return html`<section id="timeline">
    <h2>What happened, the newest first</h2>
    ${all.length === 0 ? html`<p class="quiet">Nothing is kept about this person.</p>` : ''}
    <ol class="timeline">
      ${all.slice(0, itemsShown).map((one) => itemOf(request, one, found.mask))}
    </ol>
    ${more > 0 ? html`<p class="quiet">… and ${withCommas(more)} before: the dossier has all of it.</p>` : ''}
  </section>`;
}

function itemOf(
  request: PageRequest,
  { at, title, facts, run, texts }: Happened,
  mask: (text: string) => string,
): Html {
  const safe = (text: string): string => visibleLine(mask(text));
  const link = run === null ? '' : html`<a href="${linkTo(request, `runs/${run}`)}">run ${run}</a>`;
  return html`<li>
    <p>${timeOf(at)} <strong>${safe(title)}</strong> ${link}</p>
    ${
      facts.length === 0
        ? ''
        : html`<dl>
            ${facts.map(
              ([name, text]) =>
                html`<dt>${name}</dt>
                  <dd>${prose(safe(text))}</dd>`,
            )}
          </dl>`
    }
    ${texts.map(
      ([name, text]) =>
        html`<details>
          <summary>${name}<span class="hidden"> of ${at}</span></summary>
          <pre>${safe(text).slice(0, textShown)}</pre>
        </details>`,
    )}
  </li>`;
}

function ofEntry(entry: EntryDocument): Happened {
  const { at, run, type, seq } = entry;
  const { title: what, facts: known } = entryParts(entry);
  const title = type === 'decision' ? `decided: ${what}` : what;
  const facts = [...known, ['audit log', `entry ${seq}`] as const];
  return { at, title, facts, run: run?.id ?? null, texts: [] };
}

function ofChange(change: KeptChange & { run: string }): Happened {
  const { run, op, part, state, reason, fix } = change;
  const where = part === '' ? '' : ` ${part}`;
  const approval = approvalWords(approvalOf(change));
  const why = reason === null ? [] : [['why', renderProblem({ reason, fix })] as const];
  return {
    at: instant(change.endedAt ?? change.sentAt ?? change.plannedAt),
    title: `${changeName(op, false)}${where} – ${outcomeName(state)}${approval}`,
    facts: why,
    run,
    texts: [],
  };
}

/** Returns the opt-outs that the person, or another program, made on the platform. */
function ofPlatform(
  recorded: RecordDocument['recorded'],
  nameOf: (channel: string) => string,
): Happened[] {
  if (!recorded) return [];
  const made = Object.entries(recorded.channels)
    .filter(([, { is, by }]) => is === 'opt_out' && by === 'platform')
    .map(([channel, of]) => ({ ...of, what: `opted out of ${nameOf(channel)}` }));
  const all = recorded.allMail ? [{ ...recorded.allMail, what: 'left all mail' }] : [];
  return [...made, ...all].flatMap(({ what, after, until }): Happened[] => {
    if (until === null) return [];
    const by = 'the person, or another program: no write of this mirror did it';
    const facts = [['by', by] as const, ['when', between({ after, until })] as const];
    return [{ at: until, title: `${what} on the platform`, facts, run: null, texts: [] }];
  });
}

function ofRequest(one: PersonRecords['requests'][number]): Happened {
  const { at, run, route, method, path, status, failure, ms, attempt, requestId } = one;
  const { request, answer } = one;
  const id = requestId === null ? '' : `, request id ${requestId}`;
  return {
    at: instant(at),
    title: `asked the platform: ${route}, answered ${status ?? failure ?? 'nothing'}`,
    facts: [['request', `${method} ${path} (try ${attempt}, ${withCommas(ms)} ms${id})`]],
    run,
    texts: [
      ...(request === null ? [] : [['Sent', request] as const]),
      ...(answer === null ? [] : [['Answered', answer] as const]),
    ],
  };
}
