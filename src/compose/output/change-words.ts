/** The names of changes, and of what they change, in text. */

const words: Readonly<Record<string, readonly [plan: string, done: string]>> = {
  create: ['create', 'created'],
  opt_in: ['opt in', 'opted in'],
  opt_out: ['opt out', 'opted out'],
  delete: ['delete', 'deleted'],
  update: ['update', 'updated'],
  complete: ['complete', 'completed'],
  archive: ['archive', 'archived'],
};

/** Returns what a change is called before it is made, or when it is done: create, created. */
export function changeName(op: string, isDone: boolean): string {
  return words[op]?.[isDone ? 1 : 0] ?? op.replaceAll('_', ' ');
}

/** Returns what became of a change. */
export function outcomeName(state: string): string {
  return outcomes[state] ?? state;
}

const outcomes: Readonly<Record<string, string>> = {
  acked: 'done',
  rejected: 'refused',
  stale: 'no longer right and not sent',
  unknown: 'outcome unknown',
  sent: 'sent, without an answer yet',
  planned: 'not sent',
};
