/** Shows the rate limits of the platform, as they are now or as the last run observed them. */
import { withCommas } from '../../domain/values/counted.ts';
import { lastRefused } from '../../store/request-log/read-log.ts';
import { instant, lasting, range } from '../../compose/output/format-values.ts';
import { html, type Html, sectionsHtml } from '../../views/render/html.ts';
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
    const lines =
      'fault' in found
        ? []
        : found.map(
            ({ route, n, at }) => `${route}: ${instant(at)}, ${withCommas(n)} in the request log`,
          );
    const none = 'fault' in found ? found.fault : 'The request log holds no such answer.';
    const refused = { title: 'Last refused (429)', lines, isList: true, none };
    const body = html`${liveArea(request, pieces)} ${sectionsHtml([refused], {})}`;
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
  const leftMs = running?.leftMs ?? null;
  const left = leftMs === null ? 'not known yet' : `about ${lasting(leftMs)}`;
  const run = running
    ? html`${progressLine(status)}
        <p>The run still needs: <b>${left}</b>.</p>`
    : html`<p class="quiet">No run is in progress.</p>`;
  const numbers = (title: string) => ({ title, holds: 'numbers' }) as const;
  const columns = [
    { title: 'Route', holds: 'names' } as const,
    numbers('Limit'),
    numbers('Window'),
    numbers('Used now'),
    numbers('By others'),
    'Seen',
  ];
  const routes = [...rows]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([route, { limit, windowMs, used, others, at }]) => [
      route,
      withCommas(limit),
      range(windowMs),
      used === undefined ? '–' : withCommas(used),
      `${Math.round(others * 100)} %`,
      at,
    ]);
  const none = 'No limit is known yet: the answers to a run show them.';
  return {
    'limits-run': unread ? html`<p class="flash bad">${unread.text}</p>` : run,
    'limits-routes': sectionsHtml([{ table: { columns, rows: routes }, none }], {}),
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
