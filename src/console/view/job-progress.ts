/** Renders how far the work of a job is. The browser loads the page again when it has ended. */
import { instant } from '../../compose/output/format-values.ts';
import { actionForm } from './form.ts';
import type { Job } from '../jobs/jobs.ts';
import { liveArea } from './live-area.ts';
import { html, type Html, type PageRequest, timeOf } from './page.ts';

/** Returns the parts of pages that show jobs, by id; live.ts sends them. */
export function jobPieces(request: PageRequest): Record<string, Html> {
  const jobs = request.mirror.jobs.all();
  return Object.fromEntries(jobs.map((job) => [idOf(job), progressPart(request, job)]));
}

/** Returns what a page shows while a job runs. `what` says what it is doing. */
export function jobSection(request: PageRequest, job: Job, what: string): Html {
  const stop = { action: 'stop', label: 'Stop', values: { subject: job.subject }, isGrave: true };
  return html`<section>
    <h2>In progress</h2>
    <p>${what} ${job.by} began this at ${timeOf(instant(job.startedAt))}.</p>
    ${liveArea(request, { [idOf(job)]: progressPart(request, job) })}
    <div class="row">
      <a class="button" href="${request.here}">Look again</a>
      ${job.stop && request.user.role === 'operator' ? actionForm(request, stop) : ''}
    </div>
  </section>`;
}

function idOf({ subject }: Job): string {
  return `job-${subject.replaceAll(/\W/g, '-')}`;
}

/** A progress line may name a record, so only operators see it. */
function progressPart({ user }: PageRequest, { answer, progress }: Job): Html {
  if (answer) return html`<p role="status" data-ended>It has ended.</p>`;
  const isShown = user.role === 'operator' && progress !== '';
  return html`<p role="status">${isShown ? `${sentence(progress)}.` : 'Please wait.'}</p>`;
}

function sentence(text: string): string {
  const plain = text.replace(/^rehearsal: /, '').replace(/\.$/, '');
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}
