import { Invalid } from '../domain/errors.ts';
import { permits } from './request-access.ts';
import { createDashboard, type Dashboard } from './ui/dashboard.ts';
import { createSeed, type Seed } from './seed/seed-records.ts';
import type { Accounts } from './store/accounts.ts';
import type { Organization } from './store/organization.ts';
import type { Recent } from './store/recent-entries.ts';
import { createWorld, type LoggedRequest, type World } from './ui/emulated-world.ts';

/** One organization, as a player of the emulator acts on it. */
export interface Player {
  readonly organizationId: string;
  /** A key that may read and write; if there is none, any usable key. */
  readonly apiKey: string;
  /** Prepares the world before requests come. */
  readonly seed: Seed;
  /** Acts as the people on the platform. */
  readonly dashboard: Dashboard;
  /** Shows the world and the request log. */
  readonly world: World;
}

/**
 * Returns a function that gives the player of an organization by id; it throws Invalid for an
 * unknown id.
 */
export function createPlayers(
  accounts: Accounts,
  requests: Recent<LoggedRequest>,
): (organizationId: string) => Player {
  return (organizationId) => {
    const organization = accounts.organizations.get(organizationId);
    if (organization === undefined) {
      const known = [...accounts.organizations.keys()].join(', ');
      throw new Invalid(`no organization "${organizationId}": use one of ${known}`);
    }
    return {
      organizationId,
      apiKey: bestKey(organization),
      seed: createSeed(accounts, organization),
      dashboard: createDashboard(organization),
      world: createWorld(organization, { accounts, requests }),
    };
  };
}

function bestKey({ keys }: Organization): string {
  const usable = [...keys.rows()].filter(({ enabled, revoked }) => enabled && !revoked);
  const best = usable.find((key) => permits(key, 'GET') && permits(key, 'POST'));
  return (best ?? usable[0])?.secret ?? '';
}
