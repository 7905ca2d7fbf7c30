import type { ContactRow } from '../shared/row-types.ts';

/** How the platform treats records where the specification leaves it open. */
export interface PlatformBehaviour {
  /** Returns whether a search finds the contact with this key; both are in lower case. */
  finds(key: string, search: string): boolean;
  /**
   * Whether an email keeps its case when people write it, and an enrolment finds only the exact
   * spelling.
   */
  keepsCase: boolean;
  /** Whether a changed subscription changes the `updatedAt` of the contact. */
  touches: boolean;
  /** Orders the rows of a listing, which come newest first. */
  orders?: ((rows: ContactRow[]) => ContactRow[]) | undefined;
}

/** What the emulator does unless a quirk differs. */
export const specified: PlatformBehaviour = {
  finds: (key, search) => key.includes(search),
  keepsCase: false,
  touches: false,
};
