/** Shows everything about one person: what would happen now, what is recorded, what happened. */
import { renderProblem } from '../../../domain/errors.ts';
import type { Key } from '../../../domain/record.ts';
import { type PersonRecords, recordsOf } from '../../../views/dossier/person-records.ts';
import { byWords } from '../../../compose/output/decision-words.ts';
import { maskedText } from '../../../views/lookup/person-names.ts';
import type { Seen } from '../../../views/lookup/seen-mirror.ts';
import { tellRun } from '../../../views/status/run-history.ts';
import {
  documentOf,
  type RecordDocument,
  recordSections,
} from '../../../views/state/record-document.ts';
import type { Snapshot } from '../../../store/snapshot.ts';
import { titledChannel, channelName, withChannelNames } from '../../view/channel-name.ts';
import { consoleText } from '../../view/console-text.ts';
import { html, type Html, linkTo, type Page, type PageRequest, prose } from '../../view/page.ts';
import { personIn } from '../../view/person-link.ts';
import { successorsOf, whyGone } from '../../../views/lookup/missing-people.ts';
import { answerOf, type AnswerFacts, between, whereaboutsOf } from './channel-answer.ts';
import { type ChannelOutlook, outlooksOf } from './channel-outlook.ts';
import { heldOf, type HeldOutlook } from './held-changes.ts';
import { personButtons, resolveForms } from './person-actions.ts';
import { rulesSection } from './person-rules.ts';
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
const kind = 'contact';

interface FoundPerson {
  key: Key;
  name: string;
  /** What awaits approval there does not include what is approved. */
  document: RecordDocument;
  /** What is approved and waits for a run. */
  approved: readonly HeldOutlook[];
  records: PersonRecords;
  answers: AnswerFacts;
  outlooks: ChannelOutlook[];
  changes: TimelineParts['changes'];
  /** Names channels, and masks what the user may not see. */
  say(text: string): string;
  /** Masks what the user may not see. */
  mask(text: string): string;
}

function personOf(request: PageRequest, seen: Seen): FoundPerson | undefined {
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
  const held = heldOf(snapshot, { config, now }, { key, document, whyGone: gone });
  return {
    key,
    name: names({ kind, key }),
    document: withoutApproved(document, held),
    approved: held.filter(({ is }) => is === 'approved'),
    records,
    answers: { document, entries: records.entries, listed: records.listed, movedTo },
    outlooks: outlooksOf({ document, held }, channels),
    changes: changesOf(snapshot, key),
    say: (text) => withChannelNames(request, maskedText(text, names)),
    mask: (text) => maskedText(text, names),
  };
}

function changesOf({ recordHistory }: Snapshot, key: Key): TimelineParts['changes'] {
  return recordHistory.changes(kind, key, changesShown);
}

function bodyOf(request: PageRequest, found: FoundPerson): Html {
  const { outlooks, records, document, approved, changes, say, mask, answers } = found;
  const where = whereaboutsOf(answers);
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
    ${rulesSection(request, { entries: records.entries, movedTo: answers.movedTo })}
    ${listSection(request, records, say)}
    ${timelineOf(request, { ...records, changes, recorded: document.recorded }, mask)}
    <section>
      <h2>What is recorded</h2>
      ${recordSections(document).map(([title, lines]) => linesPart(title, lines, say))}
      ${approved.length === 0 ? '' : linesPart('Approved, waits for a run', approved.map(approvedLine), say)}
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

function approvedLine({ channel, what, by, reason }: HeldOutlook): string {
  const where = channel === '' ? '' : `${channel}: `;
  return `${where}${what}; approved${byWords({ by, reason })}, waits for a run`;
}

function linesPart(title: string, lines: readonly string[], say: (text: string) => string): Html {
  return html`<h3>${title}</h3>
    <ul>
      ${lines.map((line) => html`<li>${prose(say(line))}</li>`)}
    </ul>`;
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
    ${conflict === undefined ? '' : resolveForms(request, found, { channel, conflict })}
  </div>`;
}

/** Says that a full run has seen the contact since anything was recorded of it, if one has. */
function withLastReading({ runs }: Snapshot, document: RecordDocument): RecordDocument {
  const { recorded } = document;
  if (!recorded || recorded.id === null) return document;
  const [read] = runs.list({
    mode: 'full',
    statuses: ['done', 'rejected', 'held'],
    count: 1,
    offset: 0,
  });
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
