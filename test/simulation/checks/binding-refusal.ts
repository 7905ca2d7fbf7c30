/**
 * A run that refuses to go on, since its key is not proven to be of the snapshot's organization.
 * The simulation knows one organization only: the proof may fail where little of what is recorded
 * is left, and nowhere else. Somebody would have to begin anew then; the story ends.
 */
import Database from 'better-sqlite3';
import type { RunStep } from '../story/steps.ts';
import type { Witness } from '../world/platform-history.ts';

/** Why it may not refuse; undefined = it has to. */
export function whyProven(
  path: string,
  { witness, keys }: { witness: Witness; keys: ReadonlySet<RunStep['key']> },
): string | undefined {
  if (keys.size < 2) return 'the key was never another one';
  const { contacts, templates, organization } = recordedIn(path);
  const letters = witness.letters().filter(({ gone }) => !gone);
  if (organization && letters.length > 0) return 'a template names the organization';
  const people = witness.people().filter(({ gone }) => !gone);
  const there = contacts.filter(({ id }) => people.some((person) => person.id === id));
  if (there.length * 2 > contacts.length) return `${there.length} of those recorded are there`;
  const left = templates.filter(({ id }) => letters.some((letter) => letter.id === id));
  if (contacts.length === 0 && left.length * 2 > templates.length)
    return `${left.length} of the recorded templates are there`;
  return undefined;
}

interface Row {
  kind: string;
  id: string;
}

function recordedIn(path: string) {
  const db = new Database(path, { readonly: true });
  try {
    const rows = db.prepare<[], Row>('select kind, id from recorded where id is not null').all();
    const organization = db
      .prepare("select 1 from meta where name = 'platform-organization'")
      .get();
    return {
      contacts: rows.filter(({ kind }) => kind === 'contact'),
      templates: rows.filter(({ kind }) => kind === 'template'),
      organization: organization !== undefined,
    };
  } finally {
    db.close();
  }
}
