/** Converts values as a configuration or an environment variable contains them. */

/** Returns the number in a text (environment variables are text), or any other value unchanged. */
export function numeric(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

/** Returns the boolean that the text true or false represents, or any other value unchanged. */
export function truth(value: unknown): unknown {
  return value === 'true' || value === 'false' ? value === 'true' : value;
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The form of a duration in the configuration: 90d, 20h. */
export const durationForm = /^[1-9]\d{0,5}[smhd]$/;

/** The form of a duration that may be zero: 0s. */
export const delayForm = /^(0|[1-9]\d{0,5})[smhd]$/;

/** Returns the milliseconds of a duration in one of these forms. */
export function milliseconds(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitMs[duration.slice(-1)] ?? 1);
}

/** Returns whether requests to an address stay on this machine; false for no address. */
export function isLoopback(text: string): boolean {
  const host = URL.parse(text)?.hostname ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
