/**
 * Renders what changes while a page is open (live.ts sends the changes): the progress of a run and
 * of jobs. The browser loads the page again when a job has ended.
 */
import { instant } from '../../compose/output/format-values.ts';
import { progressWords } from '../../views/status/status-sections.ts';
import type { CurrentStatus } from '../../views/status/status-document.ts';
import { html, type Html, prose, timeOf } from '../../views/render/html.ts';
import { linkTo, type PageRequest } from './page.ts';
import { actionForm } from './form.ts';
import type { Job } from './jobs.ts';

/** Returns the parts of a page by id, each of which the browser replaces when it changes. */
export function liveArea(request: PageRequest, pieces: Readonly<Record<string, Html>>): Html {
  return html`<div data-live="${linkTo(request, 'live')}">
    ${Object.entries(pieces).map(([id, piece]) => html`<div id="${id}">${piece}</div>`)}
  </div>`;
}

/** Returns the progress of the run as a sentence; nothing if none is in progress. */
export function progressLine({ at, running }: CurrentStatus): Html | '' {
  return running ? html`<p>Right now ${prose(progressWords({ at, running }))}.</p>` : '';
}

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
  if (user.role !== 'operator' || progress === '') return html`<p role="status">Please wait.</p>`;
  const plain = progress.replace(/^rehearsal: /, '').replace(/\.$/, '');
  return html`<p role="status">${plain.charAt(0).toUpperCase()}${plain.slice(1)}.</p>`;
}
