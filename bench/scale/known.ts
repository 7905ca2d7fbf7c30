/** A snapshot that knows many people, without a first run that would take an hour to make it. */
import { openSnapshot } from '../../src/store/open-snapshot.ts';

const atOnce = 10_000;

/** Records `people` as the one person that a run has recorded there. */
export function multiply(path: string, people: number): void {
  const { recorded, transaction, close } = openSnapshot(path);
  const [one] = recorded.next('contact', '', 1);
  if (one?.id === undefined) throw new Error('nobody is recorded');
  for (let from = 0; from < people; from += atOnce) {
    transaction(() => {
      for (let at = from; at < Math.min(people, from + atOnce); at += 1) {
        const id = `con_${at}`;
        const body = one.body.replaceAll(`"${one.id}"`, `"${id}"`);
        recorded.put({ ...one, key: `person${at}@example.com`, id, body });
      }
    });
  }
  close();
}
