/** Shows the rate limits of the platform, as they are now or as the last run observed them. */
import { withCommas } from '../../domain/values/counted.ts';
import { lastRefused } from '../../store/request-log/read-log.ts';
import { instant, lasting, range } from '../../compose/output/format-values.ts';
import { html, type Html, names, numbers, table } from '../../views/render/html.ts';
import { orFault, type Page, type PageRequest } from '../view/page.ts';
import { liveArea, progressLine } from '../view/live-area.ts';
import type { PageStatus } from '../view/console-mirror.ts';

/** The page of the rate limits. */
export const limitsPage: Page = {
  path: 'limits',
  nav: 'Rate limits',
  show(request) {
    const pieces = limitPieces(request, request.mirror.status());
    const found = orFault(() => lastRefused(request.mirror.config.requests.path));
    const refused =
      'fault' in found
        ? html`<p class="quiet">${found.fault}</p>`
        : html`<section>
            <h2>Last refused (429)</h2>
            ${
              found.length === 0
                ? html`<p class="quiet">The request log holds no such answer.</p>`
                : html`<ul>
                    ${found.map(
                      ({ route, n, at }) =>
                        html`<li>
                          ${route}: ${instant(at)}, ${withCommas(n)} in the request log
                        </li>`,
                    )}
                  </ul>`
            }
          </section>`;
    const body = html`${liveArea(request, pieces)} ${refused}`;
    return { title: 'Rate limits', body };
  },
};

const columns = [
  names('Route'),
  ...['Limit', 'Window', 'Used now', 'By others'].map(numbers),
  'Seen',
];

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
  const leftMs = running?.leftMs ?? null;
  const left = leftMs === null ? 'not known yet' : `about ${lasting(leftMs)}`;
  const run = running
    ? html`${progressLine(status)}
        <p>The run still needs: <b>${left}</b>.</p>`
    : html`<p class="quiet">No run is in progress.</p>`;
  const routes = table(
    columns,
    [...rows]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([route, { limit, windowMs, used, others, at }]) => [
        route,
        withCommas(limit),
        range(windowMs),
        used === undefined ? '–' : withCommas(used),
        `${Math.round(others * 100)} %`,
        at,
      ]),
    'No limit is known yet: the answers to a run show them.',
  );
  return {
    'limits-run': unread ? html`<p class="flash bad">${unread.text}</p>` : run,
    'limits-routes': routes,
  };
}

interface Row {
  limit: number;
  windowMs: number;
  others: number;
  /** The requests used in this window by everybody; undefined if this process does not know. */
  used?: number | undefined;
  at: string;
}
