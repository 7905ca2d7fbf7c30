/** Names of columns and fields, for messages. */

const LISTED = 30;

/** On one line and of bearable length, whatever a name may hold. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/** The first of them, and how many more there are. */
export function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).map(quoted).join(', ')}${more}`;
}
