/** Draws the history of a mirror: plots, each with a table of the last values. */
import { withCommas } from '../../domain/values/counted.ts';
import type { OptOutOrigin } from '../../store/tables/run-figures.ts';
import { instant, range } from '../../compose/output/format-values.ts';
import { unreadable } from '../../views/status/mirror-health.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { html, type Html, timeOf, type Cell, table } from '../../views/render/html.ts';
import { names, numbers } from '../../views/sections.ts';
import { channelName } from './console-text.ts';
import type { PageRequest } from './page.ts';

const dayMs = 86_400_000;
const shownMs = 90 * dayMs;
const mostPoints = 200;
const mostSeries = 6;

interface Series {
  label: string;
  values: (number | null)[];
}

interface Plot {
  title: string;
  /** The times in seconds since the epoch, as uPlot takes them. */
  x: number[];
  unit?: string;
  series: Series[];
  /** Formats a value for the table. */
  words?: (value: number) => string;
}

/** Returns the history as plots, each with a table of the last values. */
export async function plotsSection(request: PageRequest): Promise<Html> {
  const plots = await request.mirror
    .read({ seesAddresses: false }, (seen) => plotsOf(request, seen))
    .catch((error: unknown) => {
      // The overview says that the snapshot cannot be read, among what needs attention.
      if (unreadable(error)) return [];
      throw error;
    });
  const body =
    plots.length === 0
      ? html`<p class="quiet">There is no history yet: the first run begins it.</p>`
      : html`<div class="plots">${plots.map(figure)}</div>`;
  return html`<section aria-labelledby="history">
    <h2 id="history">History</h2>
    ${body}
  </section>`;
}

function plotsOf(request: PageRequest, { snapshot, now }: Seen): Plot[] {
  if (!snapshot) return [];
  const { figures } = snapshot;
  const since = figures.firstSince(now - shownMs);
  if (since === undefined) return [];
  const stepMs = Math.max(1, Math.ceil((now + 1 - since) / mostPoints));
  const points = figures.points({ since, stepMs });
  const x = points.map(({ at }) => Math.round(at / 1000));
  const of = (label: string, value: (point: (typeof points)[number]) => number | null): Series => ({
    label,
    values: points.map(value),
  });
  return [
    peoplePlot(request, figures.people({ since, stepMs })),
    optOutsPlot(figures.optOuts(now - shownMs)),
    { title: 'Changes per run', x, series: [of('changes', ({ changed }) => changed)] },
    {
      title: 'Run time',
      x,
      unit: ' s',
      series: [of('run time', ({ ms }) => ms / 1000)],
      words: (seconds) => range(seconds * 1000),
    },
    {
      title: 'Rate limit used',
      x,
      unit: ' %',
      series: [of('share used', ({ used }) => (used === null ? null : Math.round(used * 100)))],
    },
    {
      title: 'Requests refused by the rate limit',
      x,
      series: [of('refused', ({ refused }) => refused)],
    },
    {
      title: 'Age of the last complete run',
      x,
      unit: ' h',
      series: [of('age', ({ proofMs }) => (proofMs === null ? null : proofMs / 3_600_000))],
      words: (hours) => range(hours * 3_600_000),
    },
  ];
}

function peoplePlot(
  request: PageRequest,
  rows: readonly { at: number; people: Readonly<Record<string, number>> }[],
): Plot {
  const counts = rows.map(({ people }) => new Map(Object.entries(people)));
  const channels = [...new Set(counts.flatMap((one) => [...one.keys()]))].slice(0, mostSeries);
  return {
    title: 'People subscribed per channel',
    x: rows.map(({ at }) => Math.round(at / 1000)),
    series: channels.map((channel) => ({
      label: channelName(request, channel),
      values: counts.map((one) => one.get(channel) ?? 0),
    })),
  };
}

const origins: Readonly<Record<OptOutOrigin, string>> = {
  stated: 'stated by the CRM',
  platform: 'on the platform',
  absence: 'missing from the CRM',
  operator: 'by an operator',
};

function optOutsPlot(rows: readonly { day: string; origin: OptOutOrigin; n: number }[]): Plot {
  const days = [...new Set(rows.map(({ day }) => day))];
  const values = (origin: string): number[] =>
    days.map((day) => rows.find((row) => row.day === day && row.origin === origin)?.n ?? 0);
  return {
    title: 'Opt-outs per day',
    x: days.map((day) => Date.parse(day) / 1000),
    series: Object.entries(origins).map(([origin, label]) => ({ label, values: values(origin) })),
  };
}

const shownRows = 5;

function figure({ title, x, unit = '', series, words }: Plot): Html {
  if (x.length === 0) {
    return html`<figure>
      <figcaption>${title}</figcaption>
      <p class="quiet">None yet.</p>
    </figure>`;
  }
  const rounded = series.map(({ label, values }) => ({
    label,
    values: values.map((one) => one && Math.round(one * 100) / 100),
  }));
  const data = JSON.stringify({ x, unit, series: rounded });
  const last = x.map((_, at) => at).slice(-shownRows);
  const format = words ?? ((value: number) => withCommas(value) + unit);
  const row = (at: number): Cell[] => [
    timeOf(instant((x[at] ?? 0) * 1000)),
    ...series.map(({ values }) => {
      const value = values[at] ?? null;
      return value === null ? '–' : format(value);
    }),
  ];
  return html`<figure>
    <figcaption>${title}</figcaption>
    <div class="plot" data-plot="${data}" role="img" aria-label="${title}, as a plot"></div>
    <details>
      <summary>The last values<span class="hidden"> of ${title}</span></summary>
      ${table(
        [names('When'), ...series.map(({ label }) => numbers(label))],
        last.toReversed().map(row),
      )}
    </details>
  </figure>`;
}
