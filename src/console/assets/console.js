// What moves in the console: parts of a page that the server sends anew, and plots.
'use strict';

for (const area of document.querySelectorAll('[data-live]')) {
  const source = new EventSource(area.dataset.live);
  source.addEventListener('parts', ({ data }) => {
    for (const [id, html] of Object.entries(JSON.parse(data))) {
      const part = document.getElementById(id);
      // Whoever is typing or has opened something keeps it.
      const isInUse =
        part?.contains(document.activeElement) || part?.querySelector('details[open]');
      if (part && !isInUse) part.innerHTML = html;
    }
  });
}

const style = getComputedStyle(document.documentElement);
const color = (name) => style.getPropertyValue(name).trim();
const seriesColors = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5', '--plot-6'];

/** Draws `{ x: [seconds…], unit?, series: [{ label, values: [number or null…] }…] }`. */
function draw(area) {
  const { x, unit = '', series } = JSON.parse(area.dataset.plot);
  const axis = { stroke: color('--quiet'), grid: { stroke: color('--line'), width: 1 } };
  const size = () => ({ width: area.clientWidth, height: 200 });
  const plot = new uPlot(
    {
      ...size(),
      axes: [
        axis,
        {
          ...axis,
          size: 60,
          values: (_, ticks) => ticks.map((n) => n.toLocaleString('en') + unit),
        },
      ],
      series: [
        {},
        ...series.map(({ label }, at) => ({
          label,
          stroke: color(seriesColors[at % seriesColors.length]),
          width: 2,
          points: { show: x.length < 40 },
        })),
      ],
    },
    [x, ...series.map(({ values }) => values)],
    area,
  );
  new ResizeObserver(() => plot.setSize(size())).observe(area);
}

for (const area of document.querySelectorAll('[data-plot]')) draw(area);
