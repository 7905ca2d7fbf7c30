/** Refuses configurations that cannot be served by one process. */
import { Invalid } from '../domain/errors.ts';
import type { Config } from './config.ts';

/** Throws Invalid if two configurations name the same mirror or snapshot. */
export function refuseTwins(
  configs: readonly Pick<Config, 'file' | 'mirror' | 'snapshot'>[],
): void {
  for (const [at, { file, mirror, snapshot }] of configs.entries()) {
    const twin = configs
      .slice(0, at)
      .find((other) => other.mirror === mirror || other.snapshot === snapshot);
    if (!twin) continue;
    const what = twin.mirror === mirror ? `are both named ${mirror}` : 'share one snapshot';
    throw new Invalid(`${twin.file} and ${file} ${what}`, {
      fix: 'give each a mirror name and a snapshot',
    });
  }
}
