/** What was learnt of the platform, as the snapshot keeps it. */
import {
  platformFacts,
  withEvidence,
  type Evidence,
  type PlatformFacts,
} from '../../records/platform-facts.ts';
import { canonicalJson } from '../../domain/record.ts';
import { metaValue } from '../../snapshot/database/meta-table.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

const name = 'platform-facts';

export function factsIn({ meta }: Pick<Snapshot, 'meta'>): PlatformFacts {
  return metaValue(meta, name, platformFacts) ?? platformFacts.parse({});
}

/** What one run knows of the platform. A plan keeps what it learns to itself. */
export interface LearnedFacts {
  known(): PlatformFacts;
  learn(evidence: Evidence): void;
}

export function createFacts(
  { meta, transaction }: Pick<Snapshot, 'meta' | 'transaction'>,
  writes: boolean,
): LearnedFacts {
  let now = factsIn({ meta });
  return {
    known: () => now,
    learn(evidence) {
      // Another run of this process may have learnt something since.
      now = withEvidence(writes ? factsIn({ meta }) : now, evidence);
      const text = canonicalJson(now);
      if (writes && text !== meta.get(name)) transaction(() => meta.set(name, text));
    },
  };
}
