/** The runs that a schedule may contain. The sentinel runs in parallel with them. */
export const runs = ['full', 'fast', 'templates'] as const;
export const looks = ['sentinel'] as const;
export const ticks = [...runs, ...looks];
export type Tick = (typeof ticks)[number];

/** Returns what an entry is called in text. */
export function tickWords(tick: Tick): string {
  return tick === 'sentinel' ? 'unsubscribe check' : tick;
}

/** Defines when the entries are due. */
export interface Schedule {
  /** Cron patterns; a pattern with six fields begins with seconds. */
  patterns: Readonly<Record<Tick, string | undefined>>;
  timezone: string;
}

/** Returns the entries that have a pattern. */
export function dueIn({ patterns }: Schedule): { tick: Tick; pattern: string }[] {
  return ticks.flatMap((tick) => {
    const pattern = patterns[tick];
    return pattern === undefined ? [] : [{ tick, pattern }];
  });
}
