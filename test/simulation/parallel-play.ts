/** Many seeds over all cores: each core plays every n-th of them in a process of its own. */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { total, type Failure, type News, type Played } from './play.ts';
import type { StoryKind } from './story/story-kinds.ts';
import { tableOf } from './coverage.ts';

export interface Range {
  seeds: number;
  from: number;
  kind: StoryKind;
}

interface Hears {
  /** One more seed has been played. */
  seed(): void;
  /** At once: a long run may be ended before its end. */
  failure(failure: Failure): void;
}

/** `lines`: what is to be said in the end. */
export async function playAll(
  range: Range,
  hears: Hears,
): Promise<{ failures: Failure[]; lines: string[] }> {
  const began = performance.now();
  const failures: Failure[] = [];
  const heard = (news: News): void => {
    if (news.is === 'seed') return hears.seed();
    failures.push(news);
    hears.failure(news);
  };
  const cores = Math.min(availableParallelism(), range.seeds);
  const shares = Array.from({ length: cores }, (_, share) =>
    playShare([range.from + share, range.from + range.seeds, cores, range.kind], heard),
  );
  const { seeds, runs, requests, hours, reached, state } = total(await Promise.all(shares));
  const told = [
    `${seeds} seeds`,
    `${runs} runs`,
    `${requests} requests`,
    `${Math.round(hours)} hours`,
    `in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  ];
  const verdict = failures.length === 0 ? 'all is well' : `${failures.length} fail`;
  const end = `The platforms in the end: ${state.toString(16).padStart(12, '0')}`;
  return { failures, lines: [...tableOf(reached), end, `${told.join(', ')}: ${verdict}`] };
}

/** Of `first`, `end`, `step` and the kind of the stories. */
function playShare(
  numbers: readonly (number | StoryKind)[],
  heard: (news: News) => void,
): Promise<Played> {
  const child = fork(new URL('core-share.ts', import.meta.url), numbers.map(String));
  return new Promise((resolve, reject) => {
    child.on('message', (message: Played | News) => {
      if ('is' in message) heard(message);
      else resolve(message);
    });
    child.on('exit', (code) => reject(new Error(`a process ended too early (${code})`)));
    child.on('error', reject);
  });
}
