import { peopleOf, type People } from './people-actions.ts';
import { settingsOf, type Settings } from './settings-actions.ts';
import type { Organization } from '../store/organization.ts';

/**
 * What happens on the platform without the API: people who sign up, leave and complain, colleagues
 * who edit and delete. Whoever or whatever does not exist throws Invalid.
 */
export interface Dashboard extends People, Settings {}

export function createDashboard(organization: Organization): Dashboard {
  return { ...peopleOf(organization), ...settingsOf(organization) };
}
