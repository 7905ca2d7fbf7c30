/** A condition of SQL that several tables share. */

/** Whether this reading has the source's id of an origin under its key. */
export function isStaged(origin: string): string {
  return `exists (select 1 from temp.staged s
    where s.kind = ${origin}.kind and s.key = ${origin}.key and s.id = ${origin}.id)`;
}
