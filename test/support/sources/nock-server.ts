/** Apart from other support: who loads nock has its connections replaced. */
import nock from 'nock';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

/** Refuses requests that nock does not answer, and fails when an expected request is missing. */
export function onlyNocked(): void {
  beforeAll(() => {
    if (!nock.isActive()) nock.activate();
    nock.disableNetConnect();
  });
  beforeEach(() => nock.cleanAll());
  afterEach(() => {
    const [unasked] = nock.pendingMocks();
    if (unasked !== undefined) throw new Error(`was not asked for: ${unasked}`);
  });
  afterAll(() => {
    nock.cleanAll();
    nock.enableNetConnect();
    // Other files of this process have connections of their own.
    nock.restore();
  });
}
