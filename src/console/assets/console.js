// What moves in the console: parts of a page that the server sends anew, and plots.
'use strict';

const timeParts = {
  ...{ day: 'numeric', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', timeZoneName: 'short' },
};
const localTime = new Intl.DateTimeFormat('en-GB', timeParts);
const localMoment = new Intl.DateTimeFormat('en-GB', { ...timeParts, second: '2-digit' });

/** Shows each time in the reader's own time zone: as a text, or as the title of a relative one. */
function showLocalTimes(area) {
  for (const time of area.querySelectorAll('time[datetime]')) {
    const format = 'seconds' in time.dataset ? localMoment : localTime;
    const shows = 'ago' in time.dataset ? 'title' : 'textContent';
    time[shows] = format.format(new Date(time.dateTime));
  }
}
showLocalTimes(document);

// A phone folds what a wide window has room for, unless the address leads there.
const phone = matchMedia('(max-width: 44rem)');
function fold() {
  for (const part of document.querySelectorAll('details[data-wide]')) {
    part.open = !phone.matches || part.querySelector(':target') !== null;
  }
}
fold();
phone.addEventListener('change', fold);

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
      showLocalTimes(part);
      // What the page waited for has ended, and the answer is a page of its own.
      if (part.querySelector('[data-ended]')) location.reload();
    }
  });
}

// A page of many mirrors is asked for anew, unless somebody uses it.
for (const area of document.querySelectorAll('[data-refresh]')) {
  setInterval(async () => {
    if (document.hidden || area.contains(document.activeElement)) return;
    const headers = { 'x-renews': '1' };
    const answer = await fetch(location.href, { redirect: 'error', headers }).catch(
      () => undefined,
    );
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    area.replaceChildren(...(page.getElementById(area.id)?.childNodes ?? []));
    document.title = page.title;
    showLocalTimes(area);
  }, area.dataset.refresh * 1000);
}

// Colours follow the theme, so a canvas needs them as they are computed.
const probe = document.body.appendChild(document.createElement('span'));
function color(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
const seriesColors = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5', '--plot-6'];

const dayAndMonth = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
});
const hour = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
});
const inWords = (format, seconds) => format.format(seconds * 1000);
const isMidnight = (seconds) => /00:00/.test(inWords(hour, seconds));
const daySeconds = 86_400;
const steps = {
  count: Array.from({ length: 12 }, (_, at) => [1, 2, 5].map((n) => n * 10 ** at)).flat(),
  percent: [5, 10, 25, 50],
  seconds: [
    0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400,
  ].concat([6, 12, 24, 48, 96, 240, 720].map((hours) => hours * 3600)),
};
const units = [
  ['s', 60],
  ['min', 3600],
  ['h', 2 * daySeconds],
  ['d', Infinity],
];
const lengths = { s: 1, min: 60, h: 3600, d: daySeconds };
/** 1.2 min, 3 h */
function duration(seconds) {
  const [unit] = units.find(([, most]) => seconds < most);
  return `${Math.round((seconds / lengths[unit]) * 10) / 10} ${unit}`;
}
const values = {
  count: (n) => n.toLocaleString('en'),
  percent: (n) => `${n} %`,
  seconds: duration,
};
const shortCount = new Intl.NumberFormat('en', { notation: 'compact' });

/** The sums of each series and those after it, so that bars stand upon each other. */
function stacked(series, length) {
  const sums = Array.from({ length }, () => 0);
  const rows = series.toReversed().map(({ values: own }) => {
    own.forEach((n, at) => (sums[at] += n ?? 0));
    return [...sums];
  });
  return rows.toReversed();
}

/** Shows the values below the pointer, beside it; the other plots show only the moment. */
function createTip(area, { x, unit, series, isDaily }) {
  const tip = area.appendChild(document.createElement('div'));
  tip.className = 'tip';
  tip.hidden = true;
  return ({ cursor: { idx, left }, over }) => {
    tip.hidden = typeof idx !== 'number' || !over.matches(':hover');
    if (tip.hidden) return;
    const stated = series.filter(({ values: own }) => (own[idx] ?? null) !== null);
    const when = inWords(isDaily ? dayAndMonth : dayAndTime, x[idx]);
    const lines = stated.map(({ label, values: own }) => `${label}: ${values[unit](own[idx])}`);
    tip.textContent = [when, ...lines].join('\n');
    const isRight = left > over.clientWidth / 2;
    const beside = over.offsetLeft + left + (isRight ? -tip.offsetWidth - 12 : 12);
    tip.style.left = `${Math.max(0, beside)}px`;
    tip.style.top = `${area.offsetTop}px`;
  };
}

/** Continues a limit to both ends of the axis, so that it is a line however few runs there are. */
function withWholeLimit(plot) {
  const { x, from, to, series } = plot;
  if (!series.some(({ isLimit }) => isLimit)) return plot;
  const wider = series.map(({ values: own, ...one }) => {
    const [first, last] = one.isLimit ? [own[0], own.at(-1)] : [null, null];
    return { ...one, values: [first, ...own, last] };
  });
  return { ...plot, x: [from, ...x, to], series: wider };
}

/** Draws a plot as pages/history.ts describes it, in the colours of its legend. */
function draw(area) {
  const shown = withWholeLimit(JSON.parse(area.dataset.plot));
  const { x, from, to, unit, look, series } = shown;
  const axis = { stroke: color('--quiet'), grid: { stroke: color('--line'), width: 1 } };
  const size = () => ({ width: area.clientWidth, height: 200 });
  const words = unit === 'count' ? shortCount.format : values[unit];
  const isShort = to - from < 2 * daySeconds;
  const isBars = look === 'bars';
  const rows = isBars ? stacked(series, x.length) : series.map((one) => one.values);
  const nameOf = (at) => (series[at].isLimit ? '--bad' : seriesColors[at % seriesColors.length]);
  for (const item of area.parentElement.querySelectorAll('.legend li'))
    item.style.setProperty('--series', `var(${nameOf(item.value)})`);
  const plot = new uPlot(
    {
      ...size(),
      legend: { show: false },
      // All plots show the same time, and the same moment below the pointer.
      cursor: { y: false, sync: { key: 'history' } },
      hooks: { setCursor: [createTip(area, shown)] },
      // A plot that begins at zero shows how large a change is.
      scales: {
        x: { range: () => [from, to] },
        y: { range: (_, least, most) => [Math.min(0, least), most * 1.08 || 1] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          space: 60,
          values: (_, ticks) =>
            ticks.map((n) => inWords(isShort && !isMidnight(n) ? hour : dayAndMonth, n)),
        },
        {
          ...axis,
          size: 60,
          space: 28,
          incrs: steps[unit],
          values: (_, ticks) => ticks.map(words),
        },
      ],
      series: [
        {},
        ...series.map(({ isLimit }, at) => ({
          stroke: color(nameOf(at)),
          ...(isLimit && { dash: [6, 4] }),
          width: isBars ? 0 : 2,
          ...(isBars && {
            fill: color(nameOf(at)),
            paths: uPlot.paths.bars({ size: [0.8, 24, 4] }),
          }),
          spanGaps: true,
          points: { show: !isBars && !isLimit && x.length < 18 },
        })),
      ],
    },
    [x, ...rows],
    area,
  );
  new ResizeObserver(() => plot.setSize(size())).observe(area);
}

for (const area of document.querySelectorAll('[data-plot]')) draw(area);
