/** Merges what happened to one person: writes, decisions, changes and requests, newest first. */
import { entryParts, type EntryDocument } from '../../../views/audit/entry-document.ts';
import type { PersonRecords } from '../../../views/dossier/person-records.ts';
import type { RecordDocument } from '../../../views/state/record-document.ts';
import { approvalOf, approvalWords } from '../../../compose/output/decision-words.ts';
import { changeName, outcomeName } from '../../../compose/output/change-words.ts';
import { instant } from '../../../compose/output/format-values.ts';
import { visibleLine } from '../../../compose/output/visible-text.ts';
import { renderProblem } from '../../../domain/errors.ts';
import { withCommas } from '../../../domain/values/counted.ts';
import type { KeptChange } from '../../../store/tables/run-history.ts';
import { channelName } from '../../view/channel-name.ts';
import { html, type Html, linkTo, type PageRequest, prose, timeOf } from '../../view/page.ts';
import { between } from './channel-answer.ts';

/** Something that happened. */
interface Happened {
  /** In UTC. */
  at: string;
  title: string;
  facts: readonly (readonly [name: string, text: string])[];
  /** The id of the run that did it. */
  run: string | null;
  /** Long texts, which are shown on demand. */
  texts: readonly (readonly [name: string, text: string])[];
}

/** Everything that the timeline is made of. */
export interface TimelineParts extends Pick<PersonRecords, 'entries' | 'requests'> {
  recorded: RecordDocument['recorded'];
  changes: readonly (KeptChange & { run: string })[];
}

const shown = 60;
const textShown = 600;

/** Returns the timeline. `say` masks what the user may not see. */
export function timelineOf(
  request: PageRequest,
  parts: TimelineParts,
  say: (text: string) => string,
): Html {
  const named = (entry: EntryDocument): EntryDocument =>
    typeof entry['part'] === 'string'
      ? { ...entry, part: channelName(request, entry['part']) }
      : entry;
  const all = [
    ...parts.entries.map((entry) => ofEntry(named(entry))),
    ...parts.changes
      .filter(isUnwritten(parts.entries))
      .map((change) => ofChange({ ...change, part: channelName(request, change.part) })),
    ...parts.requests.map(ofRequest),
    ...ofPlatform(parts.recorded, (channel) => channelName(request, channel)),
  ].toSorted((a, b) => b.at.localeCompare(a.at));
  const more = all.length - shown;
  return html`<section id="timeline">
    <h2>What happened, the newest first</h2>
    ${all.length === 0 ? html`<p class="quiet">Nothing is kept about this person.</p>` : ''}
    <ol class="timeline">
      ${all.slice(0, shown).map((one) => itemOf(request, one, say))}
    </ol>
    ${more > 0 ? html`<p class="quiet">… and ${withCommas(more)} before: the dossier has all of it.</p>` : ''}
  </section>`;
}

function itemOf(
  request: PageRequest,
  { at, title, facts, run, texts }: Happened,
  say: (text: string) => string,
): Html {
  const told = (text: string): string => visibleLine(say(text));
  const link = run === null ? '' : html`<a href="${linkTo(request, `runs/${run}`)}">run ${run}</a>`;
  return html`<li>
    <p>${timeOf(at)} <strong>${told(title)}</strong> ${link}</p>
    ${
      facts.length === 0
        ? ''
        : html`<dl>
            ${facts.map(
              ([name, text]) =>
                html`<dt>${name}</dt>
                  <dd>${prose(told(text))}</dd>`,
            )}
          </dl>`
    }
    ${texts.map(
      ([name, text]) =>
        html`<details>
          <summary>${name}<span class="hidden"> of ${at}</span></summary>
          <pre>${told(text).slice(0, textShown)}</pre>
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

/** Returns whether the audit log has no write of a change, such as of one that was never sent. */
function isUnwritten(
  entries: readonly EntryDocument[],
): (change: KeptChange & { run: string }) => boolean {
  const name = (...parts: unknown[]): string => JSON.stringify(parts);
  const written = new Set(entries.map(({ run, op, part }) => name(run?.id, op, part)));
  return ({ run, op, part }) => !written.has(name(run, op, part));
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
  recorded: TimelineParts['recorded'],
  nameOf: (channel: string) => string,
): Happened[] {
  if (!recorded) return [];
  const made = Object.entries(recorded.channels).flatMap(([channel, { is, by, after, until }]) =>
    is === 'opt_out' && by === 'platform'
      ? [{ what: `opted out of ${nameOf(channel)}`, after, until }]
      : [],
  );
  const all = recorded.allMail ? [{ what: 'left all mail', ...recorded.allMail }] : [];
  return [...made, ...all].flatMap(({ what, after, until }) =>
    until === null
      ? []
      : [
          {
            at: until,
            title: `${what} on the platform`,
            facts: [
              ['by', 'the person, or another program: no write of this mirror did it'],
              ['when', between({ after, until })],
            ] as const,
            run: null,
            texts: [],
          },
        ],
  );
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
