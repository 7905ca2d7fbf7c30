/**
 * Everything that docs/rate-limits.md says about speed, as one table, in less than ten minutes on
 * two idle cores: `npm run bench all`. The peers are measured in the same run. The benchmarks that
 * it takes the rows from say more, and take other sizes.
 */
import { rate, shared } from './rate.ts';
import { enrol, fast, full } from './scale.ts';
import { start } from './start.ts';
import { printTable } from './stage/row.ts';

export async function main(): Promise<void> {
  await printTable([
    async () => start(),
    async () => fast(300_000),
    async () => full(100_000),
    async () => enrol(100_000),
    async () => rate('alone'),
    async () => rate('foreign'),
    async () => rate('four-redis', 'fixed', 'gcra'),
    async () => shared(),
  ]);
}
