/**
 * Draws the history of a mirror as plots with one axis of time: what happens as bars, what is as
 * lines, one for each mode of a run, and above each plot its newest value. What never happened is
 * one line of text.
 */
import { withCommas } from '../../domain/values/counted.ts';
import { instant, lasting } from '../../compose/output/format-values.ts';
import type { OptOutOrigin } from '../../store/tables/run-figures.ts';
import { unreadable } from '../../views/status/attention.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { html, type Html, sectionsHtml } from '../../views/render/html.ts';
import { names, numbers } from '../../views/sections.ts';
import { channelName } from '../view/console-text.ts';
import { filterLink } from '../view/form.ts';
import { linkTo, type PageRequest } from '../view/page.ts';

const dayMs = 86_400_000;
const ranges = { '1 h': dayMs / 24, '24 h': dayMs, '7 d': 7 * dayMs, '90 d': 90 * dayMs } as const;
const usual = '7 d';
const noonSeconds = 43_200;
const mostPoints = 200;
const mostSeries = 6;
const shownRows = 5;

interface Series {
  label: string;
  values: (number | null)[];
}

interface Plot {
  title: string;
  /** The times in seconds since the epoch, as uPlot takes them. */
  x: number[];
  /** The first and the last time of the axis, in the same unit. */
  from: number;
  to: number;
  /** What a value counts: things, seconds or percent. */
  unit: 'count' | 'seconds' | 'percent';
  /** Bars of several series stand upon each other. */
  look: 'bars' | 'line';
  series: Series[];
}

/** Returns the section with the plots of the time that `range` in the address names. */
export async function historySection(request: PageRequest): Promise<Html> {
  const asked = Object.entries(ranges).find(([name]) => name === request.query['range']);
  const [chosen, ms] = asked ?? [usual, ranges[usual]];
  const plots = await request.mirror
    .read({ seesAddresses: false }, (seen) => plotsOf(request, seen, ms))
    .catch((error: unknown) => {
      // The overview says that the snapshot cannot be read, among what needs attention.
      if (unreadable(error)) return [];
      throw error;
    });
  const shown = plots.filter(({ series }) =>
    series.some(({ values }) => values.some((value) => value !== null && value > 0)),
  );
  const none = plots.filter((plot) => !shown.includes(plot)).map(({ title }) => title);
  const link = (name: string): Html => {
    const href = `${linkTo(request)}?range=${encodeURIComponent(name)}#history`;
    return filterLink(href, name, name === chosen);
  };
  return html`<section aria-labelledby="history">
    <details open data-wide>
      <summary><h2 id="history">History</h2></summary>
      <p class="filters">${Object.keys(ranges).map(link)}</p>
      ${plots.length === 0 ? noHistory : ''}
      <div class="plots">${shown.map(figure)}</div>
      ${none.length === 0 ? '' : html`<p class="quiet">None in this time: ${none.join(' · ')}</p>`}
    </details>
  </section>`;
}

const noHistory = html`<p class="quiet">There is no history yet: the first run begins it.</p>`;

function plotsOf(request: PageRequest, { snapshot, now }: Seen, ms: number): Plot[] {
  if (snapshot?.figures.firstSince(0) === undefined) return [];
  const { figures } = snapshot;
  const since = now - ms;
  const stepMs = Math.max(1, Math.ceil(ms / mostPoints));
  const points = figures.points({ since, stepMs });
  const [from, to] = [since / 1000, now / 1000];
  const x = [...new Set(points.map(({ at }) => Math.round(at / 1000)))];
  const modes = [...new Set(points.map(({ mode }) => mode))].toSorted();
  const byMode = (value: (point: (typeof points)[number]) => number | null): Series[] =>
    modes.map((mode) => {
      const own = points.filter((point) => point.mode === mode);
      const values = new Map(own.map((point) => [Math.round(point.at / 1000), value(point)]));
      return { label: `${mode} runs`, values: x.map((at) => values.get(at) ?? null) };
    });
  const ages = new Map(
    points.map(({ at, proofMs }) => [Math.round(at / 1000), proofMs && proofMs / 1000]),
  );
  const rows = figures.people({ since, stepMs });
  const counts = rows.map(({ people }) => new Map(Object.entries(people)));
  const channels = [...new Set(counts.flatMap((one) => [...one.keys()]))].slice(0, mostSeries);
  const optOuts = figures.optOuts(now - Math.max(ms, ranges[usual]));
  const days = [...new Set(optOuts.map(({ day }) => day))];
  const runs = { x, from, to };
  return [
    {
      title: 'People subscribed per channel',
      x: rows.map(({ at }) => Math.round(at / 1000)),
      from,
      to,
      unit: 'count',
      look: 'line',
      series: channels.map((channel) => ({
        label: channelName(request, channel),
        values: counts.map((one) => one.get(channel) ?? 0),
      })),
    },
    {
      title: 'Opt-outs per day',
      // At noon, which is on the same day in nearly all time zones.
      x: days.map((day) => Math.min(to, Date.parse(day) / 1000 + noonSeconds)),
      from: (now - Math.max(ms, ranges[usual])) / 1000,
      to,
      unit: 'count',
      look: 'bars',
      series: Object.entries(origins).map(([origin, label]) => ({
        label,
        values: days.map(
          (day) => optOuts.find((row) => row.day === day && row.origin === origin)?.n ?? 0,
        ),
      })),
    },
    {
      title: 'Changes per run',
      ...runs,
      unit: 'count',
      look: 'bars',
      series: byMode(({ changed }) => changed),
    },
    {
      title: 'Run time',
      ...runs,
      unit: 'seconds',
      look: 'line',
      series: byMode((point) => point.ms / 1000),
    },
    {
      title: 'Rate limit used',
      ...runs,
      unit: 'percent',
      look: 'line',
      series: [
        ...byMode(({ used }) => used && Math.round(used * 100)),
        { label: 'the limit', values: x.map(() => 100) },
      ],
    },
    {
      title: 'Requests refused by the rate limit',
      ...runs,
      unit: 'count',
      look: 'bars',
      series: byMode(({ refused }) => refused),
    },
    {
      title: 'Age of the last complete run',
      ...runs,
      unit: 'seconds',
      look: 'line',
      series: [{ label: 'age', values: x.map((at) => ages.get(at) ?? null) }],
    },
  ];
}

const origins: Readonly<Record<OptOutOrigin, string>> = {
  stated: 'stated by the CRM',
  platform: 'on the platform',
  absence: 'missing from the CRM',
  operator: 'by an operator',
};

const words: Readonly<Record<Plot['unit'], (value: number) => string>> = {
  count: withCommas,
  seconds: (value) => lasting(value * 1000),
  percent: (value) => `${value} %`,
};

function figure(plot: Plot): Html {
  const { title, x, unit, series } = plot;
  const rounded = series.map(({ label, values }) => ({
    label,
    values: values.map((one) => one && Math.round(one * 100) / 100),
  }));
  const data = JSON.stringify({ ...plot, series: rounded });
  const format = (value: number | null): string => (value === null ? '–' : words[unit](value));
  const columns = [names('When'), ...series.map(({ label }) => numbers(label))];
  const last = x.map((_, at) => at).slice(-shownRows);
  const row = (at: number): string[] => [
    instant((x[at] ?? 0) * 1000),
    ...series.map(({ values }) => format(values[at] ?? null)),
  ];
  return html`<figure>
    <figcaption>${title} <b>${newest(plot)}</b></figcaption>
    <div class="plot" data-plot="${data}" role="img" aria-label="${title}, as a plot"></div>
    <details>
      <summary>The last values<span class="hidden"> of ${title}</span></summary>
      ${sectionsHtml([{ table: { columns, rows: last.toReversed().map(row) } }], {})}
    </details>
  </figure>`;
}

/** Returns the newest value: of all series together if their bars stand upon each other. */
function newest({ x, unit, look, series }: Plot): string {
  const at = x.findLastIndex((_, nth) =>
    series.some(({ values }) => (values[nth] ?? null) !== null),
  );
  const values = series.flatMap(({ values }) => values[at] ?? []);
  const shown = look === 'bars' ? [values.reduce((sum, one) => sum + one, 0)] : values;
  const [first, ...others] = unit === 'percent' ? shown.slice(0, 1) : shown;
  if (first === undefined) return '';
  return others.length > 2 ? '' : [first, ...others].map(words[unit]).join(' · ');
}
