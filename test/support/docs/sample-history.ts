/** The history of a sample mirror, for the pictures of the console: two months of nightly runs. */
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { openSnapshot } from '../../../src/snapshot/snapshot.ts';

const dayMs = 86_400_000;
const days = 60;

/** Adds to the snapshot what so many runs would have left, up to `people` subscribed people. */
export function addHistory(path: string, people: number, now: number): void {
  const random = seeded(7);
  const about = (least: number, most: number) => Math.round(least + random() * (most - least));
  const { figures, transaction, close } = openSnapshot(path);
  transaction(() => {
    for (let ago = days; ago >= 1; ago -= 1) {
      const at = now - ago * dayMs;
      const grown = 1 - (ago / days) * 0.12;
      figures.add({
        run: `sample-${ago}`,
        at,
        mode: 'full',
        ms: about(5200, 7400),
        requests: about(30, 70),
        refused: ago % 19 === 0 ? 1 : 0,
        used: about(55, 88) / 100,
        proofMs: about(5200, 7400),
        changed: about(2, ago % 7 < 2 ? 6 : 30),
        changes: '[]',
        people: JSON.stringify({
          ch_news: Math.round(people * grown) - about(0, 3),
          ch_product: Math.round(people * 0.55 * grown) - about(0, 3),
        }),
      });
      const day = new Date(at).toISOString().slice(0, 10);
      figures.addOptOuts({ day, origin: 'platform', n: about(0, 5) });
      figures.addOptOuts({ day, origin: 'stated', n: about(0, 3) });
      if (ago % 5 === 0) figures.addOptOuts({ day, origin: 'absence', n: about(1, 4) });
    }
  });
  close();
}
