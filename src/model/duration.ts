const unitMs: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Of a duration as the configuration has it: 90d, 20h. */
export function milliseconds(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitMs[duration.slice(-1)] ?? 1);
}
