import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/http/system-clock.ts';
import {
  type Connections,
  shareConnections,
} from '../../../src/compose/queues/shared-connections.ts';

/** The connections of a worker of its own, until the test has finished. */
export function connectTo(url: string): Connections {
  const shared = shareConnections(`test-${randomBytes(4).toString('hex')}`, systemClock);
  onTestFinished(() => shared.close());
  return shared.to(url);
}
