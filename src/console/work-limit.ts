/** Limits what the users of the console can have this machine do at once. */
import { Busy } from '../domain/errors.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';

/** How many processes, and how many questions to the CRM or the platform, go on at once. */
const processesAtOnce = 2;
const questionsAtOnce = 4;
/** How many more wait for one of them to end. */
const waitingAtMost = 4;

/**
 * Limits the expensive work of all mirrors together, also of those that come later. Too much of it
 * throws Busy.
 */
export function limitMirrors(
  mirrors: () => readonly ConsoleMirror[],
): () => readonly ConsoleMirror[] {
  const processes = limitWork(processesAtOnce);
  // A job may take hours, and keeps no short work waiting.
  const jobs = limitWork(processesAtOnce);
  const questions = limitWork(questionsAtOnce);
  const limit = (mirror: ConsoleMirror): ConsoleMirror => ({
    ...mirror,
    async runApart(argv, heard, stop) {
      const work = heard ? jobs : processes;
      return work(() => mirror.runApart(argv, heard, stop));
    },
    assembled: (work) => questions(() => mirror.assembled(work)),
    ask: (question) => questions(() => mirror.ask(question)),
  });
  // A mirror keeps its limited form, so that what is stored for it is found again.
  const known = new WeakMap<ConsoleMirror, ConsoleMirror>();
  const limited = (mirror: ConsoleMirror): ConsoleMirror => {
    const one = known.get(mirror) ?? limit(mirror);
    known.set(mirror, one);
    return one;
  };
  return () => mirrors().map(limited);
}

function limitWork(atOnce: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  };
  return async (work) => {
    if (running < atOnce) {
      running += 1;
    } else if (waiting.length < waitingAtMost) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      await promise;
    } else {
      throw new Busy('many users ask this console for much at the same time');
    }
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
