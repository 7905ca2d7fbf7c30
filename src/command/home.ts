/**
 * Where a worker keeps one mirror: its snapshot, ledger and lease. What it cannot begin with ends
 * the worker; what goes wrong later ends a run, is said, and the next tick tries again.
 *
 *   the lease is another's     stands by: said once, taken soon after it is free
 *   paused                     said once, and nothing is run
 *   the input cannot be used   said with every run
 *   a run failed               its summary says why; opened anew, the configuration read again
 *   a bug, or damage           said; everything is closed, and opened anew by the next tick
 */
import type { Config } from '../config/config.ts';
import { Busy, isExpected } from '../model/errors.ts';
import type { Tick } from '../queue/run-queue.ts';
import { systemClock } from '../http/time.ts';
import { assemble } from './assemble.ts';
import { explain } from './fault.ts';
import { createLog } from './log.ts';
import { runNow } from './pass.ts';
import { refusePaused } from './paused.ts';
import type { Shell } from './shell.ts';

export interface Home {
  /** Stands by until the mirror is this worker's, or it is to stop. Throws as assemble does. */
  taken(): Promise<void>;
  /** Never throws; `elsewhere`: the mirror is another's by now. */
  run(tick: Tick): Promise<'over' | 'elsewhere'>;
  close(): Promise<void>;
}

/** A dead holder's lease ends at once; this is how soon it is asked for again. */
const standByMs = 2_000;

type Opened = ReturnType<typeof assemble>;

/** `load` reads the configuration again: after a failure the key may be another one. */
export function createHome(first: Config, shell: Shell, load: () => Config): Home {
  const log = createLog(shell, first.mirror);
  const complain = complaints(first, shell);
  let config = first;
  let opened: Opened | undefined;
  const open = (): Opened => (opened ??= assemble(config, shell, { writes: true }));
  const close = async (failure?: unknown): Promise<void> => {
    const before = opened;
    opened = undefined;
    await before?.close(failure);
  };
  const begin = async (): Promise<void> => {
    await close();
    config = load();
  };
  const runOnce = async (tick: Tick): Promise<void> => {
    const { mirror } = open();
    refusePaused(mirror.snapshot.meta, config);
    const summary = await runNow(mirror, shell, optionsOf(tick));
    log.ended(summary, 'run');
    complain.no();
    if (summary.status === 'failed') await begin();
    // What was noticed when it was opened holds until a run has seen everything.
    else if (opened && summary.mode === 'full' && summary.only === null) {
      opened = { ...opened, mirror: { ...mirror, notes: [] } };
    }
  };
  return {
    async taken() {
      for (;;) {
        if (shell.stop.aborted) return;
        try {
          open();
          return;
        } catch (error) {
          if (!(error instanceof Busy)) throw error;
          complain.of(error);
          await systemClock.sleep(standByMs, shell.stop).catch(() => undefined);
        }
      }
    },
    async run(tick) {
      if (shell.stop.aborted) return 'elsewhere';
      try {
        await runOnce(tick);
      } catch (error) {
        complain.of(error);
        if (error instanceof Busy) return opened ? 'over' : 'elsewhere';
        if (isExpected(error)) await begin().catch(complain.of);
        else await close(error);
      }
      return 'over';
    },
    close,
  };
}

/** Who stands by, or is paused, is so at every tick: the same is said once. */
function complaints({ mirror }: Config, shell: Shell) {
  let said = '';
  return {
    of(error: unknown): void {
      const { text } = explain(error);
      if (error instanceof Busy && said === text) return;
      said = text;
      for (const line of text.split('\n')) shell.note(`crm-mirror: ${mirror}: ${line}`);
    },
    no: () => void (said = ''),
  };
}

function optionsOf(tick: Tick): Parameters<typeof runNow>[2] {
  return {
    mode: tick === 'fast' ? 'fast' : 'full',
    only: tick === 'templates' ? 'templates' : undefined,
    writes: true,
    progress: () => undefined,
  };
}
