/**
 * Whether the contact that answers a creation of ours was there before it, by the platform's clocks
 * alone: when it says that it was created, and the `Date` of the answer.
 *
 *   made by this creation      about as old as its answer is far: a minute at most
 *   made by others before      older
 *
 * A proxy may write a `Date` of its own. Then all are older, and so much as the youngest of those
 * before: what an age is more than that counts. Of the first one that cannot be told.
 */
export interface Ages {
  /** Both in milliseconds since the epoch; what is not known was made by us. */
  wasThere(createdAt: number | undefined, date: number | undefined): boolean;
}

/** Longer than one request takes, and than the platform's own clocks may differ. */
const madeWithinMs = 60_000;

export function createAges(): Ages {
  let youngest: number | undefined;
  return {
    wasThere(createdAt, date) {
      if (createdAt === undefined || date === undefined) return false;
      const age = date - createdAt;
      const isOlder = age - Math.max(0, youngest ?? 0) > madeWithinMs;
      youngest = Math.min(youngest ?? age, age);
      return isOlder;
    },
  };
}
