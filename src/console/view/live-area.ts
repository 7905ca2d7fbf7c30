/** Renders what changes while a page is open (live.ts sends the changes). */
import { limitWords } from '../../engine/report/duration-forecast.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { progressForms } from '../../compose/progress/progress-meter.ts';
import type { CurrentStatus } from '../../views/status/mirror-status.ts';
import { html, type Html, linkTo, type PageRequest, timeOf } from './page.ts';

/** Returns the parts of a page by id, each of which the browser replaces when it changes. */
export function liveArea(request: PageRequest, pieces: Readonly<Record<string, Html>>): Html {
  return html`<div data-live="${linkTo(request, 'live')}">
    ${Object.entries(pieces).map(([id, piece]) => html`<div id="${id}">${piece}</div>`)}
  </div>`;
}

/** Returns the progress of the run as a sentence; nothing if none is in progress. */
export function progressLine({
  at: now,
  running,
}: Pick<CurrentStatus, 'at' | 'running'>): Html | '' {
  if (!running) return '';
  const { mode, since, at, limit } = running;
  const quietMs = Math.max(0, Date.parse(now) - Date.parse(at));
  const [line] = progressForms({ ...running, quietMs });
  const seen = limit
    ? `; the platform allows ${limitWords({ ...limit, others: 0 }, lasting)} for ${limit.route}`
    : '';
  return html`<p>A ${mode} run since ${timeOf(since)}: ${line}${seen}.</p>`;
}
