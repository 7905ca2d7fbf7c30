/**
 * Draws the history of a mirror as plots with one axis of time: what happens as bars, what is as
 * lines, one for each mode of a run, and above each plot its newest value. What never happened is
 * one line of text.
 */
import { withCommas } from '../../domain/values/counted.ts';
import { dayText, instant, lasting, range } from '../../compose/output/format-values.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { OptOutOrigin, Point, RouteFigures } from '../../store/tables/run-figures.ts';
import { unreadable } from '../../views/status/attention.ts';
import { html, type Html, sectionsHtml, timeOf } from '../../views/render/html.ts';
import { names, numbers } from '../../views/sections.ts';
import { channelName } from '../view/console-text.ts';
import { filterLink, withQuery } from '../view/form.ts';
import type { PageRequest } from '../view/page.ts';

const dayMs = 86_400_000;
/** How much time a plot shows, and how much of it is one point, of which a bar is 4 px wide. */
const ranges = {
  '1 h': [dayMs / 24, dayMs / 24 / 60],
  '24 h': [dayMs, dayMs / 48],
  '7 d': [7 * dayMs, dayMs / 8],
  '90 d': [90 * dayMs, 2 * dayMs],
} as const;
const usual = '7 d';
const noonSeconds = 43_200;
const mostSeries = 6;
const shownRows = 5;

interface Series {
  label: string;
  values: (number | null)[];
  /** Whether it is the most that the others may reach. */
  isLimit?: boolean;
}

interface Plot {
  title: string;
  /** The times in seconds since the epoch, as uPlot takes them. */
  x: number[];
  /** Whether a value counts a whole day, of which its time says only the date. */
  isDaily?: true;
  /** The first and the last time of the axis, in the same unit. */
  from: number;
  to: number;
  /** What a value counts: things, seconds or percent. */
  unit: 'count' | 'seconds' | 'percent';
  /** Bars of several series stand upon each other. */
  look: 'bars' | 'line';
  series: Series[];
}

/** Makes plots of what a snapshot has recorded in the last `ms`, in steps of `stepMs`. */
type MakePlots = (
  request: PageRequest,
  from: Snapshot['figures'],
  time: { now: number; ms: number; stepMs: number },
) => Plot[];

/** Returns the section with the plots of the time that `range` in the address names. */
export async function historySection(request: PageRequest, make: MakePlots): Promise<Html> {
  const asked = Object.entries(ranges).find(([name]) => name === request.query['range']);
  const [chosen, [ms, stepMs]] = asked ?? [usual, ranges[usual]];
  const plots = await request.mirror
    .read({ seesAddresses: false }, ({ snapshot, now }) => {
      if (snapshot?.figures.firstSince(0) === undefined) return [];
      // The points stay the same while time goes on.
      const since = Math.floor((now - ms) / stepMs) * stepMs;
      return make(request, snapshot.figures, { now, ms: now - since, stepMs });
    })
    .catch((error: unknown) => {
      // The overview says that the snapshot cannot be read, among what needs attention.
      if (unreadable(error)) return [];
      throw error;
    });
  if (plots.length === 0) return noHistory;
  const shown = plots.filter(({ series }) =>
    series.some(({ values, isLimit }) => !isLimit && values.some((one) => one !== null && one > 0)),
  );
  const none = plots.filter((plot) => !shown.includes(plot)).map(({ title }) => title);
  const link = (name: string): Html =>
    filterLink(`${withQuery(request, { range: name })}#history`, name, name === chosen);
  return html`<section aria-labelledby="history">
    <details open data-wide>
      <summary><h2 id="history">History</h2></summary>
      <p class="filters">${Object.keys(ranges).map(link)}</p>
      <div class="plots">${shown.map(figure)}</div>
      ${none.length === 0 ? '' : html`<p class="quiet">None in this time: ${none.join(' · ')}</p>`}
    </details>
  </section>`;
}

const noHistory = html`<p class="quiet">
  There is no history yet: it begins with the end of the first run.
</p>`;

/** What is drawn of each run; a point, and the number above it, is the largest of several runs. */
const perRun: readonly [string, Plot['unit'], Plot['look'], (run: Point) => number | null][] = [
  ['Changes per run', 'count', 'bars', ({ changed }) => changed],
  ['Run time', 'seconds', 'line', ({ ms }) => ms / 1000],
  ['Rate limit used', 'percent', 'line', ({ used }) => used && used * 100],
  ['Requests refused by the rate limit', 'count', 'bars', ({ refused }) => refused],
];

/** The plots of a mirror: people, opt-outs and runs. */
export const mirrorPlots: MakePlots = (request, figures, { now, ms, stepMs }) => {
  const points = figures
    .points({ since: now - ms, stepMs })
    .map((one) => ({ ...one, at: Math.floor(Math.min(now, one.at) / 1000) }));
  const x = [...new Set(points.map(({ at }) => at))];
  // Full runs come first, so that they keep their colour.
  const modes = [...new Set(points.map(({ mode }) => mode))].toSorted(
    (a, b) => Number(b === 'full') - Number(a === 'full') || (a < b ? -1 : 1),
  );
  const byMode = (value: (run: Point) => number | null): Series[] =>
    modes.map((mode) => {
      const own = points.filter((point) => point.mode === mode);
      const values = new Map(own.map((point) => [point.at, value(point)]));
      return { label: `${mode} runs`, values: x.map((at) => values.get(at) ?? null) };
    });
  const rows = figures.people({ since: now - ms, stepMs });
  const counts = rows.map(({ people }) => new Map(Object.entries(people)));
  const channels = [...new Set(counts.flatMap((one) => [...one.keys()]))].slice(0, mostSeries);
  const daysMs = Math.max(ms, ranges[usual][0]);
  const barDays = Math.max(1, stepMs / dayMs);
  const optOuts = figures.optOuts(barDays, now - daysMs);
  const days = [...new Set(optOuts.map(({ day }) => day))];
  // At noon, which is on the same day in nearly all time zones.
  const noons = days.map((day) => Math.min(now / 1000, Date.parse(day) / 1000 + noonSeconds));
  const limit = { label: 'limit', values: x.map(() => 100), isLimit: true };
  const proofs = points.flatMap(({ at, proofMs }) =>
    proofMs === null ? [] : [[at, proofMs / 1000]],
  );
  const { ageMs } = request.mirror.status().status.proven ?? {};
  // Not after the end of the axis, where it would not count for the scale.
  if (typeof ageMs === 'number') proofs.push([Math.floor(now / 1000), ageMs / 1000]);
  // It grows until a run ends well.
  const ages = proofs.flatMap(([at = 0, age = 0], nth) => {
    const [then = 0, was = age] = proofs[nth - 1] ?? [];
    if (at <= then) return [];
    return [...(nth > 0 ? [[at - 1, was + at - 1 - then]] : []), [at, age]];
  });
  const age = { label: 'age', values: ages.map(([, value = 0]) => value) };
  const plot = (title: string, unit: Plot['unit'], look: Plot['look'], series: Series[]): Plot => {
    return { title, x, from: (now - ms) / 1000, to: now / 1000, unit, look, series };
  };
  const people = channels.map((channel) => ({
    label: channelName(request, channel),
    values: counts.map((one) => one.get(channel) ?? 0),
  }));
  const byOrigin = Object.entries(origins).map(([origin, label]) => ({
    label,
    values: days.map(
      (day) => optOuts.find((one) => one.day === day && one.origin === origin)?.n ?? 0,
    ),
  }));
  return [
    {
      ...plot('People subscribed per channel', 'count', 'line', people),
      x: rows.map(({ at }) => Math.round(at / 1000)),
    },
    {
      ...plot(`Opt-outs per ${barDays === 1 ? 'day' : range(stepMs)}`, 'count', 'bars', byOrigin),
      x: noons,
      isDaily: true,
      from: (now - daysMs) / 1000,
    },
    ...perRun.map(([title, unit, look, value]) => {
      const limits = unit === 'percent' ? [limit] : [];
      const whole = `${title} (largest in ${range(stepMs)})`;
      return plot(whole, unit, look, [...byMode(value), ...limits]);
    }),
    {
      ...plot('Age of the last complete run', 'seconds', 'line', [age]),
      x: ages.map(([at = 0]) => at),
    },
  ];
};

/** A plot of each route with a known limit: the requests that runs sent in one of its windows. */
export const routePlots: MakePlots = (_, figures, { now, ms, stepMs }) => {
  const title = ({ route, windowMs }: RouteFigures) => `${route}: requests per ${range(windowMs)}`;
  return [...Map.groupBy(figures.routes({ since: now - ms, stepMs }), title)]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, points]) => ({
      title: `${name} (largest in ${range(stepMs)})`,
      x: points.map(({ at }) => Math.floor(Math.min(now, at) / 1000)),
      from: (now - ms) / 1000,
      to: now / 1000,
      unit: 'count',
      look: 'line',
      series: [
        { label: 'used', values: points.map(({ sent }) => Math.round(sent * 10) / 10) },
        { label: 'limit', values: points.map(({ most }) => most), isLimit: true },
      ],
    }));
};

const origins: Readonly<Record<OptOutOrigin, string>> = {
  stated: 'stated by the CRM',
  platform: 'on the platform',
  absence: 'missing from the CRM',
  operator: 'by an operator',
};

const words: Readonly<Record<Plot['unit'], (value: number) => string>> = {
  count: withCommas,
  seconds: (value) => lasting(value * 1000),
  percent: (value) => `${Math.round(value * 10) / 10} %`,
};

function figure(plot: Plot): Html {
  const { title, x, unit, series, isDaily } = plot;
  const rounded = series.map((one) => ({
    ...one,
    values: one.values.map((value) => value && Math.round(value * 100) / 100),
  }));
  const data = JSON.stringify({ ...plot, series: rounded });
  const format = (value: number | null): string => (value === null ? '–' : words[unit](value));
  const columns = [names('When'), ...series.map(({ label }) => numbers(label))];
  const last = x.map((_, at) => at).slice(-shownRows);
  const row = (at: number): string[] => [
    instant((x[at] ?? 0) * 1000),
    ...series.map(({ values }) => format(values[at] ?? null)),
  ];
  const newest = series.map(({ values }) => values.findLastIndex((one) => one !== null));
  const then = instant((x[Math.max(...newest)] ?? 0) * 1000);
  const legend = series.map(({ label, values, isLimit = false }, at) => {
    const value = format(values[newest[at] ?? -1] ?? null);
    const isShown = isLimit || values.some(Boolean);
    return (
      isShown && html`<li value="${at}" class="${isLimit && 'limit'}">${label} <b>${value}</b></li>`
    );
  });
  return html`<figure>
    <figcaption>${title}</figcaption>
    <ol class="legend">
      ${legend}
    </ol>
    <div class="plot" data-plot="${data}" role="img" aria-label="${title}, as a plot"></div>
    <details>
      <summary>
        The last values<span class="hidden"> of ${title}</span>,
        <small>${isDaily ? `on ${dayText(then)}` : html`as of ${timeOf(then)}`}</small>
      </summary>
      ${sectionsHtml([{ table: { columns, rows: last.toReversed().map(row) } }], {})}
    </details>
  </figure>`;
}
