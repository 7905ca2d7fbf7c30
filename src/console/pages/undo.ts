/**
 * Undoes one run, for operators: first the plan, then a form that sends exactly this plan, then
 * what came of it. The plan and the undo are jobs (view/jobs.ts).
 */
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { heldIn } from '../../engine/report/run-summary.ts';
import { documentIn, type Job, runIn, undoSubject } from '../view/jobs.ts';
import { exitCode } from '../../compose/output/failure-report.ts';
import { changeName, instant } from '../../compose/output/format-values.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { cannotSection, sampleSection, type Who } from '../../views/run/change-groups.ts';
import { isUndoPlan, type RunDocument, type UndoPlan } from '../../views/run/run-document.ts';
import { mostDocumented, restSection } from '../../views/run/run-sections.ts';
import { actionForm, jobSection, signersWords } from '../view/form.ts';
import { html, type Html, prose, sectionsHtml, timeOf } from '../../views/render/html.ts';
import { link, linkTo, type Page, type PageRequest } from '../view/page.ts';
import { present, type Text } from '../../views/sections.ts';
import { readerOf } from '../view/console-text.ts';

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
  if (kind === 'undo' && answer) {
    const found = runIn(answer);
    const isDone = !Array.isArray(found) && ['done', 'rejected'].includes(found.status);
    let title = isDone || answer.code === 0 ? 'The run is undone' : 'The run could not be undone';
    if (!Array.isArray(found) && !isDone) title = 'The run is not wholly undone';
    const lines = Array.isArray(found) ? found : undoneLines(found);
    return html`${sectionsHtml([{ title, lines }], readerOf(request))}
    ${isDone ? '' : planForm(request, 'Show the plan again')}`;
  }
  if (kind === 'undo') {
    return html`${jobSection(request, job, 'The run is being undone.')}
      <p>
        The ${link(request, '', 'overview')} shows the progress of the run. You may leave this page.
      </p>`;
  }
  if (!answer) {
    const what = 'The CRM and the platform are read, to find out what can be undone.';
    return html`${beforePart(job.before)} ${jobSection(request, job, what)}`;
  }
  const document = documentIn(answer, isUndoPlan);
  const hasFailed = !Array.isArray(document) && ['failed', 'interrupted'].includes(document.status);
  const found = hasFailed ? document.reasons : document;
  if (Array.isArray(found)) {
    const none = [{ title: 'There is no plan', lines: found }];
    return html`${beforePart(job.before)} ${sectionsHtml(none, readerOf(request))}
    ${planForm(request, 'Try again')}`;
  }
  return html`${beforePart(job.before, found)}
    ${await request.mirror.read(request.user, (seen) => planSections(request, seen, found))}
    ${confirmSection(request, found)}
    <section>
      <h2>Has something changed since?</h2>
      <p>
        The CRM and the platform were read at ${timeOf(instant(job.startedAt))}, for ${job.by}. If
        either has changed, this plan is refused.
      </p>
      ${planForm(request, 'Make the plan anew')}
    </section>`;
}

/** Says why there is a new plan, after an undo that has left something to decide. */
function beforePart(before: Job | undefined, plan?: UndoPlan): Html | '' {
  if (!before?.answer) return '';
  const found = runIn(before.answer);
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

function undoneLines(found: RunDocument): Text[] {
  const { run, reasons, contacts, templates, deferred } = found;
  const later = deferredCount(deferred);
  const refused = contacts.refused + templates.refused;
  const again = 'No run does it again until the CRM states something else. An undo can be undone, ';
  return present<Text>(
    appliedWords(found),
    later > 0 &&
      `${counted(later, 'record')} must wait: the configuration limits such changes to certain ` +
        'hours. Undo the run again then.',
    refused > 0 && `The platform refused ${withCommas(refused)}.`,
    ...reasons,
    [`${again}too: `, { page: `runs/${run}`, text: 'the run that has undone it' }, '.'],
  );
}

function appliedWords({ contacts, templates }: RunDocument): string {
  const words = (counts: Readonly<Record<string, number>>, of: string): string[] =>
    Object.entries(counts)
      .filter(([, n]) => n > 0)
      .map(([op, n]) => `${withCommas(n)} ${of}${changeName(op, true)}`);
  const all = [...words(contacts.applied, ''), ...words(templates.applied, 'templates ')];
  return all.length === 0 ? 'Nothing was changed.' : `Done: ${all.join(', ')}.`;
}

function planSections(
  request: PageRequest,
  { snapshot, names }: Seen,
  { planned, cannot, undoes }: UndoPlan,
): Html {
  const who: Who = (record) => ({ record, name: names(record) });
  const reader = readerOf(request, snapshot);
  const groups = planned.map(({ kind, op, held, count: n, records }) => ({
    kind,
    op,
    held,
    n,
    own: n,
    // The title of the page names the run that all of them undo.
    records: records.map(({ key, channels: parts, reason }) => {
      return { key, parts, reason: reason.includes(undoes) ? '' : reason };
    }),
  }));
  const sections = [
    ...groups.map((group) => sampleSection(group, { who, isDone: false })),
    ...restSection(groups, `\`crm-mirror undo ${undoes} --dry-run --all\``, mostDocumented),
  ];
  const nothing = { lines: ['Nothing: there is nothing left that can be undone.'] };
  return html`<section>
      <h2>What would be done</h2>
      ${sectionsHtml(groups.length === 0 ? [nothing] : sections, reader, 3)}
    </section>
    ${sectionsHtml(cannot.length === 0 ? [] : [cannotSection(cannot, who)], reader)}`;
}

function confirmSection(request: PageRequest, plan: UndoPlan): Html | '' {
  const { planned } = plan;
  const total = (groups: UndoPlan['planned']): number =>
    groups.reduce((n, { count }) => n + count, 0);
  const [all, held] = [total(planned), total(planned.filter((group) => group.held))];
  if (all === 0) return '';
  if (held === 0) {
    return html`<section>
      <h2>Undo the run</h2>
      ${sendForm(request, plan, { label: 'Undo this run', n: all })}
    </section>`;
  }
  const counts = heldIn(plan);
  const lines = guardNames
    .filter((guard) => counts[guard] > 0)
    .map((guard) => {
      const { recordType, words } = guardRows[guard];
      return `${countWords(recordType, counts[guard])} ${words.undone}.`;
    });
  const rest = html`<h3>Or without an approval</h3>
    <p class="quiet">The rest then waits, until somebody approves it here.</p>
    ${sendForm(request, plan, { label: 'Undo without what needs approval', n: all - held })}`;
  const { approvers } = request.mirror.config;
  const label = 'Approve and undo this run';
  const approval = approvers
    ? html`<p>
        ${signersWords(approvers)} have to sign. Begin the undo below; then
        <code>crm-mirror approve ${plan.plan} --sign KEYFILE --reason TEXT</code>, and undo the run
        again.
      </p>`
    : html`<p>
          Approve it if it is what you want. In a terminal:
          <code>crm-mirror undo ${plan.undoes} --approve ${plan.plan}</code>
        </p>
        ${sendForm(request, plan, { label, n: all, action: 'undo-approve' })}`;
  return html`<section>
    <h2>${held === all ? 'It needs' : 'Some of it needs'} an approval</h2>
    ${sectionsHtml([{ lines, isList: true }], readerOf(request))} ${approval}
    ${(held < all || approvers) && rest}
  </section>`;
}

function sendForm(
  request: PageRequest,
  { plan, undoes }: UndoPlan,
  { label, n, action = 'undo' }: { label: string; n: number; action?: string },
): Html {
  const sends = `Send ${counted(n, 'change')} to the platform`;
  const what = n === 0 ? 'Ask for the approval, and send nothing yet' : sends;
  const box = html`<input type="checkbox" name="agreed" value="yes" required />`;
  const fields = html`<label>${box} ${what}</label>`;
  const values = { run: undoes, plan };
  return actionForm(request, { action, label, values, needsReason: true, isGrave: true, fields });
}
