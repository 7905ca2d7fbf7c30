/**
 * How long a rehearsal takes, and in how much memory: `npm run bench rehearse [people]`. Once for a
 * first load under a rate limit that takes hours, and once where everybody is there already.
 */
import { once } from 'node:events';
import { called, folderOf } from './stage/mirror.ts';
import { open } from './stage/open.ts';

const people = Number(process.argv[2] ?? 100_000);
for (const there of [2, people]) {
  const { url, child } = await open({ limits: ['*=999999999/1'], people: there });
  const folder = await folderOf(url, people);
  const limits = ['--limit', 'contacts.enrol=1000/60', 'contacts.list=60/60'];
  const ran = await called(folder, 'rehearse', ...limits);
  await folder.remove();
  child.kill();
  await once(child, 'exit');
  const { printed, beganMs, endedMs, computedMs, peakMb, longestMs } = ran;
  console.log(
    `${people} people, ${there} on the platform: ${((endedMs - beganMs) / 1000).toFixed(1)} s, ` +
      `${(computedMs / 1000).toFixed(1)} s of them computing, peak ${Math.round(peakMb)} MB, ` +
      `longest turn ${Math.round(longestMs)} ms`,
  );
  const told = printed.split('\n').filter((line) => /^Rehearsal|requests?  /.test(line));
  console.log(told.map((line) => `  ${line.trim()}`).join('\n'));
}
