/** The runs that a schedule may hold, and the sentinel, which runs beside them. */
export const runs = ['full', 'fast', 'templates'] as const;
export const looks = ['sentinel'] as const;
export const ticks = [...runs, ...looks];
/** One entry of a schedule. */
export type Tick = (typeof ticks)[number];

/** When the entries are due. */
export interface Schedule {
  /** Cron patterns; six fields begin with seconds. */
  patterns: Readonly<Record<Tick, string | undefined>>;
  /** An IANA name. */
  timezone: string;
}

/** Returns the entries that have a pattern. */
export function dueIn({ patterns }: Schedule): { tick: Tick; pattern: string }[] {
  return ticks.flatMap((tick) => {
    const pattern = patterns[tick];
    return pattern === undefined ? [] : [{ tick, pattern }];
  });
}
