const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The form of a duration in the configuration: 90d, 20h. */
export const durationForm = /^[1-9]\d{0,5}[smhd]$/;
/** The form of a duration that may be zero: 0s. */
export const delayForm = /^(0|[1-9]\d{0,5})[smhd]$/;

/** Returns the milliseconds of a duration in one of these forms. */
export function milliseconds(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitMs[duration.slice(-1)] ?? 1);
}
