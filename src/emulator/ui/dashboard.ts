import { peopleOf, type People } from './people-actions.ts';
import { settingsOf, type Settings } from './settings-actions.ts';
import type { Organization } from '../store/organization.ts';

/**
 * Acts on the platform without the API: people sign up, leave and complain, colleagues edit and
 * delete. Throws Invalid for a record that does not exist.
 */
export interface Dashboard extends People, Settings {}

/** Creates the dashboard of an organization. */
export function createDashboard(organization: Organization): Dashboard {
  return { ...peopleOf(organization), ...settingsOf(organization) };
}
