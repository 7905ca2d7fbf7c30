/** The table of exit codes, from the codes themselves. */
import { exitCodes } from '../../../src/cli/output/exit-codes.ts';
import { table, type Parts } from './generated-parts.ts';

const codes = Object.values(exitCodes);

/** The codes with their meanings, and the order in which one wins over another. */
export const exitCodeParts: Parts = {
  'exit codes': table(
    ['Code', 'Meaning'],
    [...Map.groupBy(codes, ({ means }) => means)]
      .map(([means, same]) => [same.map(({ code }) => code), means] as const)
      .toSorted(([[a = 0]], [[b = 0]]) => a - b)
      .map(([same, means]) => [same.map((code) => `\`${code}\``).join(', '), means]),
  ),
  'order of exit codes': codes.map(({ code }) => `\`${code}\``).join(', '),
};
