// What moves in the console: parts of a page that the server sends anew, and plots.
'use strict';

/** Names each time in the reader's own time zone, too. */
function nameLocalTimes(area) {
  for (const time of area.querySelectorAll('time[datetime]')) {
    time.title = new Date(time.dateTime).toLocaleString();
  }
}
nameLocalTimes(document);

// On a phone, the navigation is one row that scrolls.
document
  .querySelector('nav [aria-current]')
  ?.scrollIntoView({ block: 'nearest', inline: 'center' });

for (const area of document.querySelectorAll('[data-live]')) {
  const source = new EventSource(area.dataset.live);
  source.addEventListener('parts', ({ data }) => {
    for (const [id, html] of Object.entries(JSON.parse(data))) {
      const part = document.getElementById(id);
      // Whoever is typing or has opened something keeps it.
      const isInUse =
        part?.contains(document.activeElement) || part?.querySelector('details[open]');
      if (!part || isInUse) continue;
      part.innerHTML = html;
      nameLocalTimes(part);
      // What the page waited for has ended, and the answer is a page of its own.
      if (part.querySelector('[data-ended]')) location.reload();
    }
  });
}

// A page of many mirrors is asked for anew, unless somebody uses it.
for (const area of document.querySelectorAll('[data-refresh]')) {
  setInterval(async () => {
    if (document.hidden || area.contains(document.activeElement)) return;
    const answer = await fetch(location.href, { redirect: 'error' }).catch(() => undefined);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    area.replaceChildren(...(page.getElementById(area.id)?.childNodes ?? []));
    document.title = page.title;
    nameLocalTimes(area);
  }, area.dataset.refresh * 1000);
}

const style = getComputedStyle(document.documentElement);
const color = (name) => style.getPropertyValue(name).trim();
const seriesColors = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5', '--plot-6'];

const dayAndMonth = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
});
const hour = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });
const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});
const inWords = (format, seconds) => format.format(seconds * 1000);
const daySeconds = 86_400;
const wholeSteps = [1, 2, 5].flatMap((n) => Array.from({ length: 12 }, (_, at) => n * 10 ** at));

/** Draws `{ x: [seconds…], unit?, series: [{ label, values: [number or null…] }…] }`. */
function draw(area) {
  const { x, unit = '', series } = JSON.parse(area.dataset.plot);
  const axis = { stroke: color('--quiet'), grid: { stroke: color('--line'), width: 1 } };
  const size = () => ({ width: area.clientWidth, height: 200 });
  const words = (n) => n.toLocaleString('en') + unit;
  const isShort = x.at(-1) - x[0] < 2 * daySeconds;
  // One day alone would stand at the edge of an axis of years.
  const around = x.length === 1 ? [x[0] - daySeconds, x[0] + daySeconds] : undefined;
  const plot = new uPlot(
    {
      ...size(),
      // The console speaks of all times in UTC.
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      // A plot that begins at zero shows how large a change is.
      scales: {
        x: around ? { range: () => around } : {},
        y: { range: (_, least, most) => [Math.min(0, least), most * 1.08 || 1] },
      },
      axes: [
        {
          ...axis,
          space: 70,
          values: (_, ticks) =>
            ticks.map((n) => inWords(isShort && n % daySeconds !== 0 ? hour : dayAndMonth, n)),
        },
        {
          ...axis,
          size: 60,
          ...(unit === '' ? { incrs: wholeSteps.toSorted((one, other) => one - other) } : {}),
          values: (_, ticks) => ticks.map(words),
        },
      ],
      series: [
        { value: (_, n) => (n === null ? '' : `${inWords(dayAndTime, n)} UTC`) },
        ...series.map(({ label }, at) => ({
          label,
          stroke: color(seriesColors[at % seriesColors.length]),
          width: 2,
          points: { show: x.length < 40 },
          value: (_, n) => (n === null ? '' : words(n)),
        })),
      ],
    },
    [x, ...series.map(({ values }) => values)],
    area,
  );
  new ResizeObserver(() => plot.setSize(size())).observe(area);
}

for (const area of document.querySelectorAll('[data-plot]')) draw(area);
