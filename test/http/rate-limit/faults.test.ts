/**
 * Jobs that come to their end all the same. 350 requests at 60 per 60 s, by one process and by two
 * that share nothing; the least time is that of the limit first told.
 */
import { describe, expect, test } from 'vitest';
import { sampled } from '../../support/extent.ts';
import { faults } from '../../support/rate-limit/limit-servers.ts';
import { measure, readTable } from '../../support/rate-limit/limit-scenario.ts';

const job = { limit: { requests: 60, windowSeconds: 60 }, requests: 350 };

/** Ceilings, just above what is measured: time / least time, 429s. */
const table = `
                          fixed          aligned        sliding-log    sliding-counter gcra
  no headers        1     1.03  3.2%     1.02  3.2%     1.03  3.2%     1.01 29.2%     1.01 28.9%
  no headers        2     1.20  5.5%     1.10  5.8%     1.30  5.7%     1.12 34.4%     1.09 34.9%
  nor Retry-After   1     1.16  7.1%     1.09  6.5%     1.16  7.1%     1.01 28.9%     1.01 28.9%
  nor Retry-After   2     1.39 11.4%     1.20 11.6%     1.36 11.5%     1.22 32.7%     1.09 34.9%
  no Limit          1     1.01  0.0%     1.01  0.0%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  no Limit          2     1.01  1.9%     1.03  2.1%     1.10  1.7%     1.13  0.2%     1.04  3.3%
  no Remaining      1     1.01  0.0%     1.14  0.0%     1.01  0.0%     1.02 18.8%     1.04  0.0%
  no Remaining      2     1.03 13.2%     1.02 10.8%     1.03 13.2%     1.02 54.7%     1.01 54.4%
  no Window         1     1.02  1.5%     1.01  1.5%     1.03  1.5%     1.03  0.4%     1.01  0.0%
  no Window         2     1.02  2.7%     1.01  2.7%     1.02  2.7%     1.01 15.4%     1.01 19.1%
  no Retry-After    1     1.01  0.0%     1.01  0.0%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  no Retry-After    2     1.07  3.4%     1.10  3.1%     1.15  5.2%     1.16  0.2%     1.04  0.4%
  no Date           1     1.01  0.0%     1.05  0.0%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  no Date           2     1.01  0.6%     1.06  0.7%     1.12  1.4%     1.16  0.2%     1.04  0.4%
  now and then bad  1     1.01  0.0%     1.01  0.2%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  now and then bad  2     1.01  0.8%     1.08  0.7%     1.10  1.7%     1.08  0.4%     1.04  0.4%
  Remaining > Limit 1     1.04 27.5%     1.02 27.6%     1.04 27.5%     1.02 52.8%     1.01 53.2%
  Remaining > Limit 2     1.04 35.9%     1.02 36.6%     1.04 35.9%     1.01 59.8%     1.01 59.5%
  Retry-After 0     1     1.01  0.0%     1.01  0.0%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  Retry-After 0     2     1.07  3.4%     1.10  3.1%     1.15  5.2%     1.16  0.2%     1.04  0.4%
  Retry-After a date 1     1.01  0.0%     1.01  0.0%     1.01  0.0%     1.04  0.3%     1.01  0.0%
  Retry-After a date 2     1.01  0.6%     1.06  0.7%     1.12  1.4%     1.16  0.2%     1.04  0.4%
  limit 200/60 s    1     0.61  0.0%     0.49  0.0%     0.61  0.0%     0.51  0.3%     0.36  0.0%
  limit 200/60 s    2     0.61  0.2%     0.67  0.2%     0.62  0.6%     0.49  0.2%     0.63  0.2%
  limit 20/60 s     1     2.61  0.0%     2.32  0.0%     2.61  0.0%     2.63  0.3%     2.14  0.0%
  limit 20/60 s     2     2.61  0.8%     2.81  0.5%     2.75  4.3%     2.78  0.4%     2.70  0.2%
  limit 60/300 s    1     3.41  0.0%     2.39  0.0%     3.41  0.0%     3.49  0.3%     2.64  0.0%
  limit 60/300 s    2     3.42  0.5%     3.57  0.4%     3.44  1.3%     3.87  0.5%     3.53  0.3%
  limit 60/10 s     1     0.51  0.0%     0.52  0.0%     0.51  0.0%     0.43  0.3%     0.43  0.0%
  limit 60/10 s     2     0.51  0.6%     0.56  0.7%     0.52  1.5%     0.46  0.6%     0.53  0.3%
  half was used     1     1.21  0.0%     1.24  0.0%     1.21  0.0%     1.17  0.2%     1.12  0.0%
  half was used     2     1.21  0.4%     1.35  0.4%     1.27  2.1%     1.27  0.8%     1.25  0.2%
  all was used      1     1.21  0.4%     1.24  0.4%     1.22  0.4%     1.42  0.4%     1.26  0.4%
  all was used      2     1.22  1.0%     1.24  1.6%     1.22  1.5%     1.53  1.1%     1.23  0.7%
  reordered         1     1.02  0.0%     1.01  0.0%     1.02  0.0%     1.05  0.2%     1.02  0.0%
  reordered         2     1.02  0.3%     1.12  0.3%     1.06  1.5%     1.05  0.3%     1.03  0.0%
  lost 2 %          1     1.02  0.0%     1.03  0.0%     1.04  0.0%     1.05  0.3%     1.01  0.0%
  lost 2 %          2     1.03  0.2%     1.09  0.4%     1.14  2.0%     1.10  0.5%     1.03  1.7%
  lost 20 %         1     1.07  0.0%     1.10  0.0%     1.13  0.0%     1.22  0.5%     1.06  0.0%
  lost 20 %         2     1.12  0.5%     1.19  0.9%     1.24  1.3%     1.17  0.2%     1.08  0.1%
  asleep, waiting   1     1.01  0.0%     1.01  0.0%     1.01  0.0%     1.08  0.5%     1.01  0.0%
  asleep, waiting   2     1.01  0.6%     1.06  0.8%     1.12  1.4%     1.15  1.4%     1.04  0.4%
  asleep, sending   1     1.04  0.0%     1.19  0.0%     1.11  0.0%     1.21  0.2%     1.10  0.0%
  asleep, sending   2     1.01  0.5%     1.19  2.5%     1.21  2.8%     1.22  1.2%     1.11  1.7%
  clock asleep, too 1     1.06  0.0%     1.01  0.0%     1.06  0.2%     1.11  0.4%     1.01  0.0%
  clock asleep, too 2     1.16  0.6%     1.23  0.7%     1.17  1.6%     1.18  0.4%     1.20  0.4%
  clock leaps       1     1.01  1.2%     1.02  5.3%     1.04  8.2%     1.04  0.3%     1.02  0.0%
  clock leaps       2     1.01  0.6%     1.06  0.7%     1.12  1.4%     1.12  0.2%     1.04  0.4%
`;

describe('time / least time, and 429s', () => {
  const rows = readTable(table).map((row) => {
    const [, fault = '', clients = ''] = /^(.*?) +(\d)$/.exec(row.name) ?? [];
    return { ...row, fault, clients: Number(clients) };
  });

  test('the table has every fault', () => {
    const malformed = Object.keys(faults).filter((name) => name.startsWith('bad '));
    const inTable = new Set(rows.map(({ fault }) => fault));
    expect([...inTable, ...malformed].sort()).toEqual(Object.keys(faults).sort());
  });

  test.each(sampled(rows, 3))(
    '$fault, $algorithm, $clients',
    ({ fault, clients, algorithm, most }) => {
      const { ratio, refused } = measure({ ...job, algorithm, clients, ...faults[fault] });
      expect(ratio).toBeLessThanOrEqual(most.ratio);
      expect(refused).toBeLessThanOrEqual(most.refused);
    },
  );
});

test.each(['Limit', 'Remaining', 'Window', 'Retry-After', 'Date'])(
  'a malformed %s is ignored',
  (header) => {
    const two = { ...job, algorithm: 'sliding-log', clients: 2 };
    const missing = measure({ ...two, ...faults[`no ${header}`] });
    expect(measure({ ...two, ...faults[`bad ${header}`] })).toEqual(missing);
  },
);

describe('a limit that changes in mid-run', () => {
  const changed = (fault: string) =>
    measure({ ...job, algorithm: 'fixed', requests: 700, ...faults[fault] }).ratio;

  test('to a higher one is used', () => {
    expect(changed('limit 200/60 s')).toBeLessThan(0.5);
  });

  test('to a lower one is kept, alone without a refusal', () => {
    const { refused } = measure({ ...job, algorithm: 'fixed', ...faults['limit 20/60 s'] });
    expect(refused).toBe(0);
  });
});

test.each([
  [{ requests: 20, windowSeconds: 1 }, 'fixed'],
  [{ requests: 20, windowSeconds: 1 }, 'sliding-log'],
  [{ requests: 200, windowSeconds: 2 }, 'fixed'],
  [{ requests: 200, windowSeconds: 2 }, 'gcra'],
])('%o, %s: an answer that hangs does not stop its route', (limit, algorithm) => {
  // Twenty windows; each answer that is lost is given up after ten seconds.
  const lost = { limit, algorithm, requests: 19.5 * limit.requests, fault: { lost: 0.02 } };
  const { ratio, refused } = measure(lost);
  expect(ratio).toBeLessThan(1.75);
  expect(refused).toBeLessThan(0.5);
});
