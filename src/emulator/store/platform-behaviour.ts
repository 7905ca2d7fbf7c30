import type { ContactRow } from '../shared/row-types.ts';

/** What the platform does with records in a way that the specification leaves open. */
export interface PlatformBehaviour {
  /** Whether a search finds the contact of this key; both are in lower case. */
  finds(key: string, search: string): boolean;
  /** An email keeps its case where people write it; an enrolment finds its exact spelling alone. */
  keepsCase: boolean;
  /** Whether a change of a subscription moves the `updatedAt` of the contact. */
  touches: boolean;
  /** The order in which rows, the newest first, are listed this time. */
  orders?: ((rows: ContactRow[]) => ContactRow[]) | undefined;
}

export const specified: PlatformBehaviour = {
  finds: (key, search) => key.includes(search),
  keepsCase: false,
  touches: false,
};
