/** Shows the rate limits of the platform, as they are now or as the last run observed them. */
import { withCommas } from '../../domain/values/counted.ts';
import { instant, lasting, range } from '../../compose/output/format-values.ts';
import { lastRefused } from '../../store/request-log/read-log.ts';
import { orFault } from '../view/expected-error.ts';
import { liveArea, progressLine } from '../view/live-area.ts';
import { html, type Html, type Page, type PageRequest } from '../view/page.ts';
import { names, numbers, table } from '../view/table.ts';
import type { PageStatus } from '../view/page-status.ts';

/** The page of the rate limits. */
export const limitsPage: Page = {
  path: 'limits',
  nav: 'Rate limits',
  show(request) {
    const pieces = limitPieces(request, request.mirror.status());
    const body = html`${liveArea(request, pieces)} ${refusedSection(request)}`;
    return { title: 'Rate limits', body };
  },
};

/** Returns the parts of the page that change while it is open, by id. */
export function limitPieces(
  { mirror }: PageRequest,
  { status, attention }: PageStatus,
): Record<string, Html> {
  const unread = attention.find(({ code }) => code === 'snapshot_unreadable');
  const { running, limits: stored } = status;
  const now = mirror.limits();
  const rows = new Map<string, Row>(stored.map(({ route, ...one }) => [route, one]));
  for (const [route, { limit, windowMs, left, others }] of Object.entries(now)) {
    if (limit === undefined || windowMs === undefined) continue;
    const used = left === undefined ? undefined : Math.max(0, limit - left);
    rows.set(route, { limit, windowMs, others, used, at: 'now' });
  }
  const run = unread ? html`<p class="flash bad">${unread.text}</p>` : runPart(status.at, running);
  return { 'limits-run': run, 'limits-routes': routesPart(rows) };
}

interface Row {
  limit: number;
  windowMs: number;
  others: number;
  /** The requests used in this window by everybody; undefined if this process does not know. */
  used?: number | undefined;
  at: string;
}

function runPart(at: string, running: PageStatus['status']['running']): Html {
  if (!running) return html`<p class="quiet">No run is in progress.</p>`;
  const { leftMs } = running;
  const left = leftMs === null ? 'not known yet' : `about ${lasting(leftMs)}`;
  return html`${progressLine({ at, running })}
    <p>The run still needs: <b>${left}</b>.</p>`;
}

const columns = [
  names('Route'),
  ...['Limit', 'Window', 'Used now', 'By others'].map(numbers),
  'Seen',
];

function routesPart(rows: ReadonlyMap<string, Row>): Html {
  if (rows.size === 0) {
    return html`<p class="quiet">No limit is known yet: the answers to a run show them.</p>`;
  }
  const sorted = [...rows].toSorted(([a], [b]) => a.localeCompare(b));
  return table(
    columns,
    sorted.map(([route, { limit, windowMs, used, others, at }]) => [
      route,
      withCommas(limit),
      range(windowMs),
      used === undefined ? '–' : withCommas(used),
      `${Math.round(others * 100)} %`,
      at,
    ]),
  );
}

/** Returns the last refusal of each route, as far as the request log goes back. */
function refusedSection({ mirror }: PageRequest): Html {
  const found = orFault(() => lastRefused(mirror.config.requests.path));
  if ('fault' in found) return html`<p class="quiet">${found.fault}</p>`;
  return html`<section>
    <h2>Last refused (429)</h2>
    ${
      found.length === 0
        ? html`<p class="quiet">The request log holds no such answer.</p>`
        : html`<ul>
            ${found.map(
              ({ route, n, at }) =>
                html`<li>${route}: ${instant(at)}, ${withCommas(n)} in the request log</li>`,
            )}
          </ul>`
    }
  </section>`;
}
