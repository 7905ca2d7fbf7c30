/** All that the simulation has found stays fixed, and the first seeds end as they always did. */
import { describe, test } from 'vitest';
import { endAsRecorded, staysFixed } from './recorded-stories.ts';
import { regressions } from './story/regressions.ts';

test('the first 60 seeds hold, and end as they always did', async () => endAsRecorded(60));

describe('a regression stays fixed:', () => {
  test.each(regressions)('$found', staysFixed);
});
