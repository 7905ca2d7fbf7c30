/**
 * Observes what a run would meet: copies the files of the mirror, and reads the CRM and the
 * platform as a plan does. It only reads, takes no lease and writes no file of the mirror.
 */
import { assemble } from '../../compose/assemble-mirror.ts';
import { connect } from '../../compose/platform-connection.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { runNow } from '../../app/run/run-command.ts';
import type { Config } from '../../config/config.ts';
import type { Random } from '../../domain/clock.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { median } from '../../domain/values/median.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import type { Progress, RunOptions } from '../../engine/context/mirror-context.ts';
import { seenLimits } from '../../engine/plan/run-forecast.ts';
import type { Summary } from '../../engine/report/run-summary.ts';
import { createSend } from '../../http/send-request.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { PlatformFacts } from '../../records/platform-facts.ts';
import { type PlatformView, watched } from './platform-view.ts';
import { createReadings, type SourceReadings } from './source-readings.ts';
import { onlyReads } from './transports.ts';
import { copyForRehearsal, type WorkingCopy } from './working-copy.ts';

/** What was observed. */
export interface Original {
  config: Config;
  /** The plan that the observation made. */
  summary: Summary;
  view: PlatformView;
  readings: SourceReadings;
  facts: PlatformFacts;
  limits: Readonly<Record<string, Pick<RouteLimit, 'limit' | 'windowMs'>>>;
  /** How far the platform's clock is ahead. */
  aheadMs: number;
  /** About how long a request takes. */
  latencyMs: number;
  /** How long reading both sides took. */
  readMs: number;
  /** The requests that were sent to the platform. All of them only read. */
  reads: number;
}

/** What to observe, and with how many copies of the files. */
interface Observing {
  only: RunOptions['only'];
  copies: number;
  random: Random;
  progress(progress: Progress): void;
}

/** The platform states whole seconds; less than that is no difference. */
const sameTimeMs = 2000;

/**
 * Observes the mirror. `use` receives the observation and one copy of the files for each rehearsal;
 * afterwards the copies are removed, also if something fails.
 */
export async function observeOriginal<T>(
  config: Config,
  { shell, only, copies, progress, random }: Observing & { shell: Shell },
  use: (original: Original, copies: readonly WorkingCopy[], names: Names) => Promise<T>,
): Promise<T> {
  const view: PlatformView = { contacts: new Map(), templates: new Map() };
  const readings = createReadings();
  const took: number[] = [];
  const { url, timeoutMs } = config.platform;
  const network = createSend({ url, timeoutMs, userAgent: 'crm-mirror' });
  const reading = onlyReads(network.send);
  const transport = { send: reading.send, close: network.close };
  const { mirror, close } = await assemble(config, shell, {
    writes: false,
    standIns: {
      clock: systemClock,
      random,
      connect: (read, on) =>
        watched(connect(read, on, { transport, record: ({ ms }) => void took.push(ms) }), view),
      sourceFor: (name, source) => readings.of(name, source, async (real) => real),
    },
  });
  const made: WorkingCopy[] = [];
  try {
    const { snapshot } = mirror;
    for (let n = 0; n < copies; n += 1) {
      made.push(await copyForRehearsal({ config, snapshot }, shell.stop));
    }
    const startMs = systemClock.monotonic();
    const summary = await runNow(mirror, shell, { mode: 'full', writes: false, only, progress });
    const platformNow = mirror.platformNow();
    const aheadMs = platformNow === undefined ? 0 : platformNow - systemClock.now();
    const original: Original = {
      config,
      summary,
      view,
      readings,
      facts: factsIn(snapshot),
      limits: { ...seenLimits(snapshot.meta), ...known(mirror.limits()) },
      aheadMs: Math.abs(aheadMs) < sameTimeMs ? 0 : aheadMs,
      latencyMs: roundedUp(median(took)),
      readMs: systemClock.monotonic() - startMs,
      reads: reading.count(),
    };
    return await use(original, made, { snapshot });
  } finally {
    for (const one of made) one.remove();
    await close();
  }
}

/** What the names of people are made with. */
type Names = Pick<Parameters<typeof copyForRehearsal>[0], 'snapshot'>;

function known(limits: Original['limits']): Original['limits'] {
  const stated = Object.entries(limits).filter(([, { limit, windowMs }]) => limit && windowMs);
  return Object.fromEntries(stated);
}

/**
 * Rounds up to a few steps, so that two rehearsals of the same seed do not differ because one
 * answer came a little later.
 */
function roundedUp(ms: number): number {
  return [20, 50, 100, 200, 500].find((step) => ms <= step) ?? 1000;
}
