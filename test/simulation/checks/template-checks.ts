/** What must hold of a template that is about to be made or changed. */
import { checkGuard } from './guard-checks.ts';
import { horizon, type Arrival, type Known } from './checker-state.ts';
import type { Since } from '../world/platform-history.ts';

export function checkCreation(arrival: Arrival, { witness, story, memories, judge }: Known): void {
  const { outing, asks } = arrival;
  const since = horizon(arrival);
  const what = `the template "${asks.name}" was made`;
  const alike = witness.letters().filter(({ name }) => name === asks.name);
  const there = alike.filter(({ made, gone }) => made.at < since && !gone);
  judge('an existing template is not created', there.length > 0 && `${what}, and was there`);
  const named = outing.templates.records.some((record) => record['name'] === asks.name);
  judge('only templates of the source are created', !named && `${what}, and nobody wants it`);
  const knownFrom = memories.adoptedAt();
  const vanished = alike.some(
    ({ made, gone }) =>
      made.by === 'us' && isBetween(gone, knownFrom, since) && memories.heardOf({ made, gone }),
  );
  if (!vanished) return;
  // One that was gone from both sides at once is forgotten.
  const isFree = story.templates === 'overwrite' || memories.missed(asks.name ?? '');
  judge('a vanished template is not created again', !isFree && `${what} again, and had vanished`);
}

/** By somebody else, when it was known to us, and before it had to be known. */
function isBetween(since: Since | undefined, from: number, to: number): boolean {
  return since !== undefined && since.by === 'others' && since.at >= from && since.at < to;
}

export function checkUpdate(arrival: Arrival, known: Known): void {
  const { witness, story, memories, judge } = known;
  const { entry, outing, asks } = arrival;
  const since = horizon(arrival);
  const letter = witness.letters().find(({ id }) => entry.path.endsWith(`/${id}`));
  if (!letter) return;
  const { name, made, edited } = letter;
  const what = `the template "${name}" was changed`;
  const records = outing.templates.records.map((record) => record['name']);
  const named = [name, letter.former, asks.name].some((one) => records.includes(one));
  const archives = asks.status === 'archived' && story.absentTemplates === 'archive';
  const unnamed = !named && !archives && !outing.undoes;
  judge('only templates of the source are changed', unnamed && `${what}, and nobody wants it`);
  // The second step of a creation belongs to that, however late it is.
  const isSecond = made.by === 'us' && edited.at === made.at;
  if (made.at < outing.startedAt && !isSecond) {
    const isGone = !named || outing.undoes;
    const op = asks.status === 'archived' && isGone ? 'archive' : 'update';
    const change = {
      guard: 'template',
      op,
      keys: [letter.id],
      part: '',
      target: letter.id,
    } as const;
    checkGuard(what, change, { arrival, known });
  }
  if (made.by === 'us' && isBetween(edited, memories.adoptedAt(), since)) {
    const isFree = archives || story.templates === 'overwrite';
    const wrong = !isFree && `${what}, and had been edited by hand`;
    judge('a template that was edited by hand is left alone', wrong);
  }
  if (made.at !== Number.NEGATIVE_INFINITY || letter.former !== undefined) return;
  // Doubled from the beginning, and alike ever since: neither was ever adopted.
  const twins = witness
    .letters()
    .filter((one) => one.name === name && one.made.at === made.at && !one.gone && !one.former);
  const several = twins.length > 1 && `${what}, and ${twins.length} have that name`;
  judge('templates that share a name are not changed', several);
}
