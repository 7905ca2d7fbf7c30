/**
 * Undoes one run, for operators: first the plan, then a form that sends exactly this plan, then
 * what came of it. The plan and the undo are jobs (jobs/jobs.ts).
 */
import { deferredCount } from '../../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';
import type { CommandAnswer } from '../../../compose/separate-process.ts';
import { exitCode } from '../../../compose/output/exit-codes.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import { instant } from '../../../compose/output/format-values.ts';
import { actionForm } from '../../view/form.ts';
import { jobSection } from '../../view/job-progress.ts';
import { type Job, undoSubject } from '../../jobs/jobs.ts';
import {
  html,
  type Html,
  linkTo,
  type Page,
  type PageRequest,
  prose,
  timeOf,
} from '../../view/page.ts';
import { planIn, type Undone, undoneIn, type UndoPlan } from './undo-answer.ts';
import { planPart } from './undo-plan.ts';

/** The page on which a run is undone. */
export const undoPage: Page = {
  path: 'runs/:id/undo',
  async show(request) {
    const { mirror, user, id } = request;
    const title = `Undo run ${id}`;
    if (user.role !== 'operator')
      return { title, code: 403, body: html`<p>Only operators can undo a run.</p>` };
    const kept = await mirror.read(user, ({ snapshot }) => snapshot?.runs.get(id));
    if (!kept) return { title, code: 404, body: html`<p>This run is not kept any more.</p>` };
    const job = mirror.jobs.get(undoSubject(id));
    const body = html`<p>
        The changes of this run are taken back, as far as the rules allow it today. Nobody is opted
        in again who has said no. First you see the plan; nothing is sent before you confirm it.
        <a href="${linkTo(request, `runs/${id}`)}">Back to the run</a>
      </p>
      ${job ? await jobPart(request, job) : planForm(request, 'Show the plan')}`;
    return { title, body };
  },
};

/** Returns the form that makes the plan and leads to this page. */
export function planForm(request: PageRequest, label: string): Html {
  const { id } = request;
  const values = { run: id, back: linkTo(request, `runs/${id}/undo`) };
  return actionForm(request, { action: 'undo-plan', label, values, isSecond: true });
}

async function jobPart(request: PageRequest, job: Job): Promise<Html> {
  const { answer, kind } = job;
  if (kind === 'undo') return answer ? undonePart(request, answer) : sending(request, job);
  if (!answer) {
    const what = 'The CRM and the platform are read, to find out what can be undone.';
    return html`${beforePart(job.before)} ${jobSection(request, job, what)}`;
  }
  const found = planIn(answer);
  if (Array.isArray(found)) {
    return html`${beforePart(job.before)} ${refusal('There is no plan', found)}
    ${planForm(request, 'Try again')}`;
  }
  return html`${beforePart(job.before, found)} ${await planPart(request, found)}
    <section>
      <h2>Has something changed since?</h2>
      <p>
        The CRM and the platform were read at ${timeOf(instant(job.startedAt))}, for ${job.by}. If
        either has changed, this plan is refused.
      </p>
      ${planForm(request, 'Make the plan anew')}
    </section>`;
}

function sending(request: PageRequest, job: Job): Html {
  const overview = html`<a href="${linkTo(request)}">overview</a>`;
  return html`${jobSection(request, job, 'The run is being undone.')}
    <p>The ${overview} shows the progress of the run. You may leave this page.</p>`;
}

/** Says why there is a new plan, after an undo that has left something to decide. */
function beforePart(before: Job | undefined, plan?: UndoPlan): Html | '' {
  if (!before?.answer) return '';
  const found = undoneIn(before.answer);
  if (before.answer.code === exitCode('held')) {
    const done = Array.isArray(found) ? '' : appliedWords(found);
    return html`<div class="flash busy" role="status">
      <p>A guard has held changes of your undo: they await approval. ${done}</p>
      <p>Below is what remains.</p>
    </div>`;
  }
  // The same plan was refused for another reason.
  const isOther = plan && !before.argv.includes(`--agree=${plan.plan}`);
  const reasons = Array.isArray(found) ? found : found.reasons;
  const lines = isOther
    ? ['The CRM, the platform or the mirror has changed since you looked. Here is the new plan.']
    : reasons;
  return html`<div class="flash busy" role="status">
    <p><b>Nothing was sent.</b></p>
    ${plan ? lines.map((line) => html`<p>${prose(line)}</p>`) : html`<p>The plan is made anew.</p>`}
  </div>`;
}

function undonePart(request: PageRequest, answer: CommandAnswer): Html {
  const found = undoneIn(answer);
  if (Array.isArray(found)) {
    const title = answer.code === 0 ? 'The run is undone' : 'The run could not be undone';
    return html`${refusal(title, found)} ${planForm(request, 'Show the plan again')}`;
  }
  const { run, status, reasons, contacts, templates, deferred } = found;
  const later = deferredCount(deferred);
  const refused = contacts.refused + templates.refused;
  const isGood = status === 'done' || status === 'rejected';
  return html`<section>
    <h2>${isGood ? 'The run is undone' : 'The run is not wholly undone'}</h2>
    <p>${appliedWords(found)}</p>
    ${
      later > 0
        ? html`<p>
            ${counted(later, 'record')} must wait: the configuration limits such changes to certain
            hours. Undo the run again then.
          </p>`
        : ''
    }
    ${refused > 0 ? html`<p>The platform refused ${withCommas(refused)}.</p>` : ''}
    ${reasons.map((reason) => html`<p>${prose(reason)}</p>`)}
    <p>
      No run does it again until the CRM states something else. An undo can be undone, too:
      <a href="${linkTo(request, `runs/${run}`)}">the run that has undone it</a>.
    </p>
    ${isGood ? '' : planForm(request, 'Show the plan again')}
  </section>`;
}

function appliedWords({ contacts, templates }: Undone): string {
  const words = (counts: Readonly<Record<string, number>>, of: string): string[] =>
    Object.entries(counts)
      .filter(([, n]) => n > 0)
      .map(([op, n]) => `${withCommas(n)} ${of}${changeName(op, true)}`);
  const all = [...words(contacts.applied, ''), ...words(templates.applied, 'templates ')];
  return all.length === 0 ? 'Nothing was changed.' : `Done: ${all.join(', ')}.`;
}

function refusal(title: string, lines: readonly string[]): Html {
  return html`<section>
    <h2>${title}</h2>
    ${lines.map((line) => html`<p>${prose(line)}</p>`)}
  </section>`;
}
