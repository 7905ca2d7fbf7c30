/** Rehearses the next run for operators, and shows everybody how it would go. */
import { instant } from '../../../compose/output/format-values.ts';
import { actionForm } from '../../view/form.ts';
import { jobSection } from '../../view/job-progress.ts';
import { type Job, rehearsalSubject } from '../../jobs/jobs.ts';
import { html, type Html, linkTo, type Page, type PageRequest, prose } from '../../view/page.ts';
import { rehearsalIn } from './rehearsal-answer.ts';
import { resultOf } from './rehearsal-result.ts';

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
      ${job?.answer ? await answerPart(request, job) : ''}
      ${job ? '' : html`<p class="quiet">Nothing has been rehearsed since this console began.</p>`}`;
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

async function answerPart(request: PageRequest, job: Job): Promise<Html> {
  const { answer, by, endedAt = job.startedAt } = job;
  if (!answer) return html``;
  const found = rehearsalIn(answer);
  if (!Array.isArray(found)) {
    const about = { found, by, at: instant(endedAt) };
    return request.mirror.read(request.user, (seen) => resultOf(request, seen, about));
  }
  const lines =
    request.user.seesAddresses || found.length === 0
      ? found
      : ['An operator sees here why it could not be made.'];
  return html`<section>
    <h2>The rehearsal could not be made</h2>
    ${lines.map((line) => html`<p>${prose(line)}</p>`)}
  </section>`;
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
    <label
      >Rate limits (optional)
      <input
        name="limits"
        maxlength="1000"
        autocomplete="off"
        spellcheck="false"
        placeholder="contacts.enrol=30/60"
        aria-describedby="limits-hint"
    /></label>`;
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
