/** What a schedule may have due: runs, and what stands beside them. */
export const runs = ['full', 'fast', 'templates'] as const;
export const looks = ['sentinel'] as const;
export const ticks = [...runs, ...looks];
export type Tick = (typeof ticks)[number];

export interface Schedule {
  /** Cron patterns, with seconds where they have six fields. */
  patterns: Readonly<Record<Tick, string | undefined>>;
  /** An IANA name. */
  timezone: string;
}

/** What is due by it, and when. */
export function dueIn({ patterns }: Schedule): { tick: Tick; pattern: string }[] {
  return ticks.flatMap((tick) => {
    const pattern = patterns[tick];
    return pattern === undefined ? [] : [{ tick, pattern }];
  });
}
