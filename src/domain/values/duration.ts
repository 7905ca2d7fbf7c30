const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** How a configuration writes one: 90d, 20h. */
export const durationForm = /^[1-9]\d{0,5}[smhd]$/;
/** … and one that may be nothing at all: 0s. */
export const delayForm = /^(0|[1-9]\d{0,5})[smhd]$/;

/** Of a duration as the configuration has it. */
export function milliseconds(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitMs[duration.slice(-1)] ?? 1);
}
