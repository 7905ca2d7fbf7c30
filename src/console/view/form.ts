/**
 * Renders what a page has besides sections: forms for actions, and only for operators; filters,
 * whose values are in the address of a page, with links that keep them; and what changes while the
 * page is open (live.ts sends the changes), such as the progress of a job.
 */
import { instant } from '../../compose/output/format-values.ts';
import { progressWords } from '../../views/status/status-sections.ts';
import { stepWords } from '../../compose/run-progress.ts';
import type { CurrentStatus } from '../../views/status/status-document.ts';
import { html, type Html, prose, raw, timeOf } from '../../views/render/html.ts';
import type { Job } from './jobs.ts';
import { linkTo, type PageAddress, type PageContent, type PageRequest } from './page.ts';

interface Button {
  /** The action (actions.ts), if it is another one than that of the form. */
  action?: string;
  label: string;
  /** What the button sends besides the fields of its form. */
  sends?: { name: string; value: string };
  /** Whether the button stands for something that is hard to take back. */
  isGrave?: boolean;
  /** Whether the button stands behind others. */
  isSecond?: boolean;
}

/** A form with one button, or with several that share its fields. */
export interface FormParts extends Button {
  action: string;
  second?: Button;
  third?: Button | undefined;
  values?: Readonly<Record<string, string>>;
  fields?: Html;
  /** Asks for a reason, which is kept with the decision; `optional`: it may be left out. */
  needsReason?: boolean | 'optional';
}

/** Returns a form that is sent with the token of the session, and with these hidden values. */
export function postForm(
  csrf: string,
  action: string,
  content: Html | string,
  values: Readonly<Record<string, string>> = {},
): Html {
  const hidden = Object.entries({ csrf, ...values });
  return html`<form class="action" method="post" action="${action}">
    ${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
    ${content}
  </form>`;
}

/** Returns the form; for a viewer, a note that an operator may do it. */
export function actionForm(request: PageRequest, parts: FormParts): Html {
  const { action, label, values = {}, fields = '', needsReason = false, second, third } = parts;
  if (request.user.role !== 'operator') {
    return html`<p class="quiet">
      An operator can do this: ${second ? `${label}, ${second.label}` : label}.
    </p>`;
  }
  const { action: _, ...first } = parts;
  const isOptional = needsReason === 'optional';
  const whose = second ? ', kept with the button that you press' : '';
  const reason = `Reason (${isOptional ? 'optional' : 'required'}${whose})`;
  const content = html`${fields} ${needsReason && textField(reason, { name: 'reason', isOptional })}
  ${[first, second, third].map((one) => one && button(request, one))}`;
  const hidden = { back: request.here, ...values };
  return postForm(request.csrf, linkTo(request, `do/${action}`), content, hidden);
}

/** Returns a field for a text, which the browser does not complete. */
export function textField(
  label: string,
  field: {
    name: string;
    type?: 'date' | undefined;
    isOptional?: boolean;
    most?: number;
    value?: string | undefined;
    example?: string;
    /** The id of the element that explains it. */
    hint?: string;
  },
): Html {
  const { name, type = 'text', isOptional = false, most = 300, hint } = field;
  const { value = '', example = '' } = field;
  return html`<label
    >${label}
    <input
      name="${name}"
      type="${type}"
      value="${value}"
      ${!isOptional && 'required'}
      maxlength="${most}"
      autocomplete="off"
      spellcheck="false"
      placeholder="${example}"
      ${hint && html`aria-describedby="${hint}"`}
  /></label>`;
}

/** Names how many approvers have to sign: 2 of 3 approvers */
export function signersWords({ need, keys }: { need: number; keys: object }): string {
  return `${need} of ${Object.keys(keys).length} approvers`;
}

function button(
  request: PageRequest,
  { action, label, sends, isGrave = false, isSecond = false }: Button,
): Html {
  const to = action === undefined ? '' : raw(`formaction="${linkTo(request, `do/${action}`)}"`);
  const what = sends ? html`name="${sends.name}" value="${sends.value}"` : '';
  const style = [isGrave ? 'grave' : '', isSecond ? 'second' : ''].join(' ').trim();
  return html`<button class="${style}" ${to} ${what}>${label}</button>`;
}

/** Returns the form whose button has a page of the mirror ask the CRM or the platform. */
export function askForm(
  request: PageRequest,
  { path, label }: { path: string; label: string },
): Html {
  const content = html`<button class="second">${label}</button>`;
  return postForm(request.csrf, linkTo(request, path), content);
}

/** What a viewer gets who has the CRM or the platform asked. */
export const notOperator = forbidden('Only operators can ask the CRM and the platform');

/** Returns the page for a user who may not see it. */
export function forbidden(line: string): PageContent {
  return { title: 'This is not for you', code: 403, body: html`<p>${line}.</p>` };
}

/** A field of a filter. */
export interface Choice {
  name: string;
  label: string;
  /** The values, each with its text; without them, the user types one. */
  options?: readonly (readonly [value: string, text: string])[];
  type?: 'date';
  /** What is shown without a choice; everything by default. */
  usual?: string;
}

/** Returns a field with these values; by default, they are their own texts. */
export function choice<Value extends string>(
  name: string,
  label: string,
  values: readonly Value[],
  textOf: (value: Value) => string = (value) => value,
): Choice {
  return { name, label, options: values.map((value) => [value, textOf(value)]) };
}

/** Returns the form; a field without a choice selects everything. */
export function filterForm(request: PageAddress, choices: readonly Choice[]): Html {
  return html`<form class="row" method="get" action="${pathOf(request)}">
    ${choices.map((one) => field(one, request.query[one.name]))}
    <button class="second">Filter</button>
  </form>`;
}

function field(
  { name, label, options, type, usual = 'all' }: Choice,
  chosen: string | undefined,
): Html {
  if (!options) return textField(label, { name, value: chosen, type, isOptional: true });
  return html`<label
    >${label}
    <select name="${name}">
      <option value="">${usual}</option>
      ${options.map(
        ([value, text]) =>
          html`<option value="${value}" ${value === chosen && raw('selected')}>${text}</option>`,
      )}
    </select></label
  >`;
}

/** Returns a link that chooses what a page shows; `isCurrent`: whether it shows that now. */
export function filterLink(href: string, text: string, isCurrent: boolean): Html {
  return html`<a class="filter" href="${href}" ${isCurrent ? raw('aria-current="true"') : ''}
    >${text}</a
  >`;
}

/** Returns the address of this page with other values in its query; undefined removes one. */
export function withQuery(
  request: PageAddress,
  values: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...request.query, ...values })) {
    if (value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return pathOf(request) + (text === '' ? '' : `?${text}`);
}

/** Returns links to other entries of a page; false: to none. `before` stands before them. */
export function pageLinks(
  request: PageAddress,
  links: readonly (false | readonly [text: string, query: Parameters<typeof withQuery>[1]])[],
  before = '',
): Html {
  return html`<p class="row">
    ${before}
    ${links.map((one) => one && html`<a href="${withQuery(request, one[1])}">${one[0]}</a>`)}
  </p>`;
}

/** Returns the links to the entries before and after those that a page shows. */
export function pagerLinks(
  request: PageRequest,
  from: number,
  perPage: number,
  hasMore: boolean,
): Html {
  const newer = from > perPage ? `${from - perPage}` : undefined;
  return pageLinks(request, [
    from > 0 && ['Newer', { from: newer }],
    hasMore && ['Older', { from: `${from + perPage}` }],
  ]);
}

function pathOf({ here }: PageAddress): string {
  return here.split('?', 1)[0] ?? here;
}

/** Returns the parts of a page by id, each of which the browser replaces when it changes. */
export function liveArea(request: PageRequest, pieces: Readonly<Record<string, Html>>): Html {
  return html`<div data-live="${linkTo(request, 'live')}">
    ${Object.entries(pieces).map(([id, piece]) => html`<div id="${id}">${piece}</div>`)}
  </div>`;
}

/** Returns the progress of the run as a sentence and a bar; nothing if none is in progress. */
export function progressLine({ at, running }: CurrentStatus): Html | '' {
  if (!running) return '';
  const { total, done } = running;
  const name = 'Progress of the run';
  const bar = html`<progress aria-label="${name}" max="${total}" value="${done}"></progress>`;
  return html`<p>Right now ${prose(progressWords({ at, running }))}.</p>
    <p>${stepWords(running)}</p>
    ${total !== null && bar}`;
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
      ${job.stop && request.user.role === 'operator' && actionForm(request, stop)}
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
