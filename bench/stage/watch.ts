/** Loaded before a program: tells, when it ends, how large it was and how long it stood still. */
import { readFileSync, writeSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface Watched {
  /** The most memory it ever had, in megabytes. */
  peakMb: number;
  /** The longest time in which the event loop did not turn; the machine's other work included. */
  longestMs: number;
  /** Of such times the most that this program itself was computing. */
  busiestMs: number;
  /** The time for which this program was computing, from its start to its end. */
  computedMs: number;
}

const everyMs = 10;
const delay = monitorEventLoopDelay({ resolution: everyMs });
const own = { cpuMs: cpuMs(), busiestMs: 0, begun: false };
delay.enable();
setInterval(() => {
  const nowMs = cpuMs();
  // What is loaded and compiled at the start is no part of a run.
  if (own.begun) own.busiestMs = Math.max(own.busiestMs, nowMs - own.cpuMs);
  else delay.reset();
  own.cpuMs = nowMs;
  own.begun ||= performance.now() > 1000;
}, everyMs).unref();

process.on('exit', () => {
  const watched: Watched = {
    peakMb: peakKb() / 1024,
    longestMs: delay.max / 1e6,
    busiestMs: own.busiestMs,
    computedMs: cpuMs(),
  };
  writeSync(3, JSON.stringify(watched));
});

/** Linux counts into a process's usage what its parent had when it began it; not in here. */
function peakKb(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS;
  return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}

/** What this thread has computed so far. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
