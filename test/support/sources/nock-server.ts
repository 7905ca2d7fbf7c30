import nock from 'nock';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

/** In this file nobody is asked but whom nock stands for, and all that it expects is asked for. */
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
