/**
 * Rehearses the next run for operators, and shows everybody how it would go: how long, what it
 * would do, and who would end otherwise.
 */
import { withCommas } from '../../domain/values/counted.ts';
import { instant, lasting } from '../../compose/output/format-values.ts';
import { documentIn, type Job, rehearsalSubject } from '../view/jobs.ts';
import type { CommandAnswer } from '../../compose/process-shell.ts';
import { maskedText } from '../../views/lookup/person-names.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import {
  endings,
  heldCount,
  isRehearsal,
  type Rehearsal,
  rehearsalSections,
} from '../../views/run/rehearsal.ts';
import { html, type Html, sectionsHtml, tiles, timeOf } from '../../views/render/html.ts';
import { actionForm, jobSection, textField } from '../view/form.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';
import { readerOf } from '../view/console-text.ts';

/** The page of the last rehearsal. */
export const rehearsalPage: Page = {
  path: 'rehearsal',
  async show(request) {
    const job = request.mirror.jobs.get(rehearsalSubject);
    const isRunning = job !== undefined && !job.answer;
    const body = html`<p>
        A rehearsal reads the CRM and the platform, and then makes the next run on copies. It shows
        how the run would go and how long it would take. Nothing is sent, and nothing changes.
      </p>
      ${isRunning ? jobSection(request, job, 'The next run is being rehearsed.') : formSection(request)}
      ${job?.answer && (await answerPart(request, job, job.answer))}
      ${!job && html`<p class="quiet">Nothing has been rehearsed since this console began.</p>`}`;
    return { title: 'Rehearsal', body };
  },
};

/** Returns the link to the page, for operators, and for everybody if there is an answer. */
export function rehearsalLink(request: PageRequest): Html | '' {
  const job = request.mirror.jobs.get(rehearsalSubject);
  const isOperator = request.user.role === 'operator';
  if (!isOperator && !job) return '';
  const text = isOperator ? 'Rehearse the next run' : 'Look at the rehearsal';
  return html`<a class="button second" href="${linkTo(request, 'rehearsal')}">${text}</a>`;
}

async function answerPart(request: PageRequest, job: Job, answer: CommandAnswer): Promise<Html> {
  const { by, endedAt = job.startedAt } = job;
  const found = documentIn(answer, isRehearsal);
  if (!Array.isArray(found)) {
    const about = { found, by, at: instant(endedAt) };
    return request.mirror.read(request.user, (seen) => resultOf(request, seen, about));
  }
  const isHidden = !request.user.seesAddresses && found.length > 0;
  const lines = isHidden ? ['An operator sees here why it could not be made.'] : found;
  return sectionsHtml([{ title: 'The rehearsal could not be made', lines }], readerOf(request));
}

function formSection(request: PageRequest): Html | '' {
  if (request.user.role !== 'operator') return '';
  const fields = html`<label
      >Which run
      <select name="mode">
        <option value="full">full: compares everything with the platform</option>
        <option value="fast">fast: compares the CRM with what is recorded</option>
      </select></label
    >
    ${textField('Rate limits (optional)', {
      name: 'limits',
      isOptional: true,
      most: 1000,
      example: 'contacts.enrol=30/60',
      hint: 'limits-hint',
    })}`;
  return html`<section>
    <h2>Rehearse the next run</h2>
    ${actionForm(request, { action: 'rehearse', label: 'Rehearse', fields })}
    <p class="quiet" id="limits-hint">
      Without a limit here, those that the platform has stated count.
      <code>contacts.enrol=30/60</code>
      means: 30 opt-ins and opt-outs in 60 seconds. Separate several with a space.
    </p>
  </section>`;
}

function resultOf(
  request: PageRequest,
  { snapshot, names }: Seen,
  { found, by, at }: { found: Rehearsal; by: string; at: string },
): Html {
  const { seesAddresses } = request.user;
  const { tone, text } = endings[found.status];
  const { ms, mode, peopleCount, requests, reasons } = found;
  // What awaits approval has a section of its own.
  const groups = found.groups.filter((group) => group.class !== 'held');
  // Otherwise, the words and values of records are hidden: of a problem, the cause is said alone.
  const rehearsal = seesAddresses
    ? { ...found, groups }
    : {
        ...found,
        people: found.people.map(({ changes, ...person }) => ({
          ...person,
          changes: changes.map((one) => ({ ...one, reason: maskedText(one.reason, names) })),
        })),
        groups: groups.map((of) => ({ ...of, reason: of.cause, fix: '', samples: [] })),
      };
  // Without a snapshot, there is no key from which a hash could be made.
  const isNamed = snapshot !== undefined || seesAddresses;
  const sections = rehearsalSections(isNamed ? rehearsal : { ...rehearsal, people: [] }, {
    config: request.mirror.config,
    who: (record) => ({ record, name: names(record) }),
    approving: { page: 'approvals', text: 'the page Approvals' },
    most: found.people.length,
    namesAll: isNamed ? '`crm-mirror rehearse --all` names all' : 'an operator sees who',
    asOf: (route) => asOf(request, route, at),
  });
  const why = seesAddresses ? reasons : ['An operator sees here why.'];
  return html`<p class="state"><span class="chip ${tone}">${text}</span></p>
    <p class="quiet">
      A ${mode} run, rehearsed by ${by} at ${timeOf(at)}. What changes in the CRM or on the platform
      later is not in it.
    </p>
    ${tiles([
      [lasting(ms), 'it would take'],
      [withCommas(peopleCount), 'people would end otherwise than today'],
      [withCommas(heldCount(found)), 'would await approval'],
      [withCommas(requests.total), 'requests to the platform'],
    ])}
    ${sectionsHtml(
      [{ title: 'Why', lines: reasons.length === 0 ? [] : why, isList: true }, ...sections],
      readerOf(request, snapshot),
    )}`;
}

/** Says since when the limit of a route is known, which the rehearsal took from the last run. */
function asOf({ mirror }: PageRequest, route: string, rehearsedAt: string): string {
  const { limits, running } = mirror.status().status;
  const at = limits.find((one) => one.route === route)?.at;
  if (at === undefined || at > rehearsedAt) return '';
  const isBefore = running !== null && at < running.since;
  return `, as of ${at}${isBefore ? ', before the current run' : ''}`;
}
