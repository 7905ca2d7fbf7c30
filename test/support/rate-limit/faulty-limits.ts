/** What servers, networks and machines do wrong, by name. */
import type { Job } from './limit-scenario.ts';

type Headers = Record<string, string>;
type Part = Partial<Pick<Job, 'fault' | 'latencyMs' | 'used'>>;

const told = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-window'];
const garbage = ['', '-1', 'x', '1e3', 'NaN', '1.5.2', '99999999999999999999', ' '];

const headers = (change: (headers: Headers, nth: number) => Headers): Part => {
  return { fault: { headers: change } };
};
const without = (...names: string[]): Part =>
  headers((all) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name))),
  );
const malformed = (...names: string[]): Part =>
  headers((all, nth) => {
    const text = garbage[nth % garbage.length]!;
    const changed = names.filter((name) => name in all).map((name) => [name, text]);
    return { ...all, ...Object.fromEntries(changed) };
  });
const retryAfter = (text: (headers: Headers) => string): Part =>
  headers((all) => ('retry-after' in all ? { ...all, 'retry-after': text(all) } : all));

const change = (requests: number, windowSeconds: number): Part => {
  return { fault: { change: { atMs: 100_000, limit: { requests, windowSeconds } } } };
};

/** Under a limit of 60 requests per 60 s. */
export const faults: Record<string, Part> = {
  'no headers': without(...told),
  'nor Retry-After': without(...told, 'retry-after'),
  'no Limit': without('x-ratelimit-limit'),
  'no Remaining': without('x-ratelimit-remaining'),
  'no Window': without('x-ratelimit-window'),
  'no Retry-After': without('retry-after'),
  'no Date': without('date'),
  'bad Limit': malformed('x-ratelimit-limit'),
  'bad Remaining': malformed('x-ratelimit-remaining'),
  'bad Window': malformed('x-ratelimit-window'),
  'bad Retry-After': malformed('retry-after'),
  'bad Date': malformed('date'),
  'now and then bad': headers((all, nth) =>
    nth % 7 === 0 ? malformed(...told, 'retry-after', 'date').fault!.headers!(all, nth) : all,
  ),
  'Remaining > Limit': headers((all) => {
    return { ...all, 'x-ratelimit-remaining': `1${all['x-ratelimit-remaining']}00` };
  }),
  'Retry-After 0': retryAfter(() => '0'),
  'Retry-After a date': retryAfter((all) => {
    const waitMs = Number(all['retry-after']) * 1000;
    return new Date(Date.parse(all['date']!) + waitMs).toUTCString();
  }),
  'limit 200/60 s': change(200, 60),
  'limit 20/60 s': change(20, 60),
  'limit 60/300 s': change(60, 300),
  'limit 60/10 s': change(60, 10),
  'half was used': { used: 30 },
  'all was used': { used: 60 },
  reordered: { latencyMs: [0, 500] },
  'lost 2 %': { fault: { lost: 0.02 } },
  'lost 20 %': { fault: { lost: 0.2 } },
  'asleep, waiting': { fault: { sleep: { atMs: 70_000, forMs: 45_000 } } },
  'asleep, sending': { fault: { sleep: { atMs: 60, forMs: 30_000 } } },
  'clock asleep, too': {
    fault: { sleep: { atMs: 70_000, forMs: 45_000 }, leap: { atMs: 115_000, byMs: -45_000 } },
  },
  'clock leaps': { fault: { leap: { atMs: 100_000, byMs: 45_000 } } },
};
