/** What is shipped for Prometheus and Grafana fits the metrics that a worker serves. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { createMetrics } from '../src/worker/server/metrics.ts';
import { findProgram, run } from './support/program.ts';

const folder = join(import.meta.dirname, '../config/deploy');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

const rule = z.object({
  alert: z.string(),
  expr: z.string(),
  labels: z.object({ severity: z.enum(['critical', 'warning']) }),
  annotations: z.object({ summary: z.string(), description: z.string() }),
});
const rulesFile = z.object({
  groups: z.array(z.object({ rules: z.array(rule).min(9) })).length(1),
});
const rules = rulesFile
  .parse(parse(read('prometheus-rules.yaml')))
  .groups.flatMap((group) => group.rules);

const panel = z.object({
  id: z.number(),
  title: z.string(),
  description: z.string().min(1),
  gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
  targets: z.array(z.object({ expr: z.string(), refId: z.string() })).min(1),
});
const dashboard = z
  .object({ uid: z.literal('crm-mirror'), panels: z.array(panel).min(10) })
  .parse(JSON.parse(read('grafana-dashboard.json')));
const plots = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

/** The names that a scrape of a worker contains. */
async function served(): Promise<Set<string>> {
  const types = (await createMetrics([]).text()).matchAll(/^# TYPE (\S+) (\S+)$/gm);
  return new Set(
    [...types].flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
    ),
  );
}

const namesIn = (text: string): string[] => text.match(/\bcrm_mirror_\w+/g) ?? [];

test.each([
  ...rules.map(({ alert, expr }) => [alert, expr]),
  ...plots.map((p) => [p.title, p.expr]),
])('%s uses metrics that a worker serves', async (_, expr = '') => {
  const known = await served();
  expect(namesIn(expr).filter((name) => !known.has(name))).toEqual([]);
  expect(namesIn(expr).length + (expr.startsWith('up{') ? 1 : 0)).toBeGreaterThan(0);
});

test('a metric that no worker serves would be found', async () => {
  expect((await served()).has('crm_mirror_people_saved')).toBe(false);
  expect(namesIn('sum(crm_mirror_people_saved{mirror="a"})')).toEqual(['crm_mirror_people_saved']);
});

test('the documentation explains every alert', () => {
  const page = readFileSync(join(folder, '../../docs/metrics.md'), 'utf8');
  expect(rules.map(({ alert }) => alert).filter((name) => !page.includes(`\`${name}\``))).toEqual(
    [],
  );
});

test('the panels of the dashboard do not overlap', () => {
  const places = dashboard.panels.map(({ gridPos }) => gridPos);
  const cells = places.flatMap(({ x, y, w, h }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)}:${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...places.map(({ x, w }) => x + w))).toBeLessThanOrEqual(24);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(places.length);
});

const promtool = await findProgram(['promtool']);

/** Calls promtool with a file, and returns what it prints. */
async function checked(how: readonly string[], document: object): Promise<string> {
  const made = mkdtempSync(join(tmpdir(), 'crm-mirror-rules-'));
  onTestFinished(() => rmSync(made, { recursive: true }));
  const file = join(made, 'file.yaml');
  writeFileSync(file, stringify(document));
  const { stdout, stderr } = await run(promtool ?? '', [...how, file]);
  return stdout + stderr;
}

test.runIf(promtool)('promtool takes the expressions of the dashboard', async () => {
  const recording = plots.map(({ expr }, at) => ({
    record: `plot_${at}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$mirror', '.*'),
  }));
  const groups = [{ name: 'dashboard', rules: recording }];
  expect(await checked(['check', 'rules'], { groups })).toContain('SUCCESS');
});

/** Series for which every alert fires, in a mirror of its own where they exclude each other. */
const series: Readonly<Record<string, string>> = {
  'crm_mirror_last_proven_run_age_seconds{mirror="a"}': '200000x2000',
  'crm_mirror_paused{mirror="a"}': '1x2000',
  'crm_mirror_paused{mirror="new"}': '0x2000',
  'up{job="crm-mirror"}': '0x2000',
  'crm_mirror_configuration_refused{file="a.yaml"}': '1x2000',
  'crm_mirror_fleet_unserved{}': '1x2000',
  'crm_mirror_unreadable_opt_outs{mirror="a"}': '2x2000',
  'crm_mirror_opt_outs_refused{mirror="a"}': '2x2000',
  'crm_mirror_erasures_unfinished{mirror="a"}': '1x2000',
  'crm_mirror_quarantined{mirror="a"}': '1x2000',
  'crm_mirror_runs_total{mirror="a",mode="fast",status="failed"}': '0+1x2000',
  'crm_mirror_runs_total{mirror="a",mode="fast",status="done"}': '7x2000',
  'crm_mirror_held{mirror="a",class="opt_in"}': '3x2000',
  'crm_mirror_returns_rejected{mirror="a"}': '1x2000',
  'crm_mirror_event_lag_seconds{mirror="a"}': '900x2000',
  'crm_mirror_alert{mirror="a",threshold="refused"}': '1x2000',
  'crm_mirror_served{mirror="blind"}': '0x2000',
};

/** A mirror that is well, about which nothing fires. */
const calm: Readonly<Record<string, string>> = {
  'crm_mirror_last_proven_run_age_seconds{mirror="well"}': '3600x2000',
  'crm_mirror_paused{mirror="well"}': '0x2000',
  'up{job="crm-mirror",instance="well"}': '1x2000',
  'crm_mirror_unreadable_opt_outs{mirror="well"}': '0x2000',
  'crm_mirror_opt_outs_refused{mirror="well"}': '0x2000',
  'crm_mirror_runs_total{mirror="well",mode="fast",status="failed"}': '0+1x2000',
  'crm_mirror_runs_total{mirror="well",mode="fast",status="done"}': '0+1x2000',
  'crm_mirror_held{mirror="well",class="opt_in"}': '0x2000',
  'crm_mirror_alert{mirror="well",threshold="refused"}': '0x2000',
  'crm_mirror_served{mirror="well"}': '0x2000',
  'crm_mirror_queue_jobs{mirror="well",queue="run",state="waiting"}': '0x2000',
};

test.runIf(promtool)(
  'each alert fires when it should, and none about a mirror that is well',
  async () => {
    const input = Object.entries({ ...series, ...calm }).map(([name, values]) => ({
      series: name,
      values,
    }));
    const firing = rules.map(({ alert }) => ({
      expr: `count(ALERTS{alertname="${alert}", alertstate="firing"})`,
      eval_time: '30h',
      exp_samples: [{ labels: '{}', value: 1 }],
    }));
    const quiet = { expr: 'ALERTS{mirror="well"} or ALERTS{instance="well"}', eval_time: '30h' };
    const tests = [{ interval: '1m', input_series: input, promql_expr_test: [...firing, quiet] }];
    const document = { rule_files: [join(folder, 'prometheus-rules.yaml')], tests };
    expect(await checked(['test', 'rules'], document)).toContain('SUCCESS');
  },
);

/** A worker of each kind of fault, whose figures stay the same for five days. */
const vanished: Readonly<Record<string, string>> = {
  'crm_mirror_served{mirror="damaged"}': '4x7200',
  'crm_mirror_queue_jobs{mirror="damaged",queue="run",state="waiting"}': '0x7200',
  'crm_mirror_served{mirror="no redis"}': '4x7200',
  'crm_mirror_paused{mirror="no redis"}': '0x7200',
  'crm_mirror_last_proven_run_age_seconds{mirror="no redis"}': '3600x7200',
  // Another worker of the same mirror stands by, and can read its own copy.
  'crm_mirror_served{mirror="shared",instance="a"}': '4x7200',
  'crm_mirror_queue_jobs{mirror="shared",instance="a",queue="run",state="waiting"}': '0x7200',
  'crm_mirror_served{mirror="shared",instance="b"}': '4x7200',
  'crm_mirror_queue_jobs{mirror="shared",instance="b",queue="run",state="waiting"}': '0x7200',
  'crm_mirror_paused{mirror="shared",instance="b"}': '0x7200',
  'crm_mirror_last_proven_run_age_seconds{mirror="shared",instance="b"}': '3600x7200',
};

test.runIf(promtool)('figures that vanish while the worker answers are an alert', async () => {
  const input = Object.entries(vanished).map(([name, values]) => ({ series: name, values }));
  const firing = (at: string, labels: readonly string[]) => ({
    expr: 'count by (alertname, mirror, instance) (ALERTS{alertstate="firing"})',
    eval_time: at,
    exp_samples: labels.map((one) => ({ labels: one, value: 1 })),
  });
  const all = [
    '{alertname="CrmMirrorStateUnreadable", mirror="damaged"}',
    '{alertname="CrmMirrorRedisAway", mirror="no redis"}',
    '{alertname="CrmMirrorStateUnreadable", mirror="shared", instance="a"}',
  ];
  const tests = [
    {
      interval: '1m',
      input_series: input,
      promql_expr_test: [firing('4m', []), firing('1h', all), firing('119h', all)],
    },
  ];
  const document = { rule_files: [join(folder, 'prometheus-rules.yaml')], tests };
  expect(await checked(['test', 'rules'], document)).toContain('SUCCESS');
});
